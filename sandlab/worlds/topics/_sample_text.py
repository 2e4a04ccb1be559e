"""A few short articles, to try the text adapter on when no file is given."""

SAMPLE = """
= Frog =
A frog is a small animal with a smooth wet skin. The frog lives near a pond, where it eats insects, and a young frog
swims in the water as a tadpole. The toad is its dry cousin, and the lizard hunts the same insects on warm stones.

= Toad =
A toad has a dry rough skin and walks more than it jumps. In spring the toad returns to the pond where it was a
tadpole. Like the frog, the toad eats insects; the lizard and the toad hide under stones in winter.

= Lizard =
A lizard is a reptile with scales on its skin and a long tail. The lizard lies on warm stones in the sun and eats
insects. Unlike the frog and the toad, the lizard lays its eggs on land and not in water.

= Mozart =
Mozart was a composer who wrote operas, symphonies and concertos. As a child Mozart played the piano at court. His
music was admired by the composer Beethoven, who may have met Mozart once, and by Schubert, who played his quartets.

= Beethoven =
Beethoven was a composer and pianist. His symphonies and piano sonatas changed music. Beethoven studied the operas of
Mozart, and the young Schubert carried a torch at the funeral of Beethoven.

= Schubert =
Schubert was a composer of songs, quartets and symphonies. Schubert loved the music of Mozart and Beethoven, played the
piano for his friends, and left one of his symphonies without an end.

= Algebra =
Algebra is the study of equations and of the symbols in them. In algebra a letter stands for a number, and rules of
arithmetic tell how equations change. Calculus needs algebra wherever it turns a limit into a number.

= Arithmetic =
Arithmetic is the study of numbers: of addition, multiplication and division. Algebra writes the rules of arithmetic
with letters. Each number is a product of primes, which arithmetic proves without calculus.

= Calculus =
Calculus is the study of change: of limits, derivatives and integrals of a function. Calculus was built on algebra and
arithmetic, and its equations describe how a number grows.
"""
