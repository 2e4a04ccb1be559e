"""The networks of progressive distillation: the theory's perceptron; GPT-2 and BERT as settings of the transformer."""
