# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab.decoding.decoders.backtracking import Backtracking as Backtracking
from sandlab.decoding.decoders.backtracking import rejected_prefixes as rejected_prefixes
from sandlab.decoding.decoders.base import Decoder as Decoder
from sandlab.decoding.decoders.base import draw as draw
from sandlab.decoding.decoders.base import warp_logits as warp_logits
from sandlab.decoding.decoders.blocks import BlockBestOfN as BlockBestOfN
from sandlab.decoding.decoders.prefix_search import search_prefixes as search_prefixes
from sandlab.decoding.decoders.rejection import BestOfN as BestOfN
from sandlab.decoding.decoders.rejection import EarlyAbort as EarlyAbort
from sandlab.decoding.decoders.rejection import ExhaustiveSearch as ExhaustiveSearch
from sandlab.decoding.decoders.rejection import Rejection as Rejection
from sandlab.decoding.decoders.rejection import TokenwiseRejection as TokenwiseRejection
from sandlab.decoding.decoders.sampling import Greedy as Greedy
from sandlab.decoding.decoders.sampling import Nucleus as Nucleus
from sandlab.decoding.decoders.sampling import Sampling as Sampling
from sandlab.decoding.decoders.sampling import Temperature as Temperature
from sandlab.decoding.decoders.scratchpad import scratchpad_decode as scratchpad_decode
from sandlab.decoding.decoders.walks import SinclairJerrum as SinclairJerrum
from sandlab.decoding.decoders.walks import VGB as VGB
from sandlab.decoding.decoders.walks import ValueGuided as ValueGuided
from sandlab.decoding.exact.distributions import backtracking_distribution as backtracking_distribution
from sandlab.decoding.exact.distributions import best_of_n_distribution as best_of_n_distribution
from sandlab.decoding.exact.distributions import block_best_of_n_distribution as block_best_of_n_distribution
from sandlab.decoding.exact.distributions import kl_divergence as kl_divergence
from sandlab.decoding.exact.distributions import restricted_distribution as restricted_distribution
from sandlab.decoding.exact.distributions import sampling_distribution as sampling_distribution
from sandlab.decoding.exact.distributions import tokenwise_distribution as tokenwise_distribution
from sandlab.decoding.exact.distributions import total_variation as total_variation
from sandlab.decoding.exact.distributions import value_guided_distribution as value_guided_distribution
from sandlab.decoding.exact.trees import TableVerifier as TableVerifier
from sandlab.decoding.exact.trees import Tree as Tree
from sandlab.decoding.exact.trees import TreeGenerator as TreeGenerator
from sandlab.decoding.exact.walks import TreeWalk as TreeWalk
from sandlab.decoding.exact.walks import first_leaf_distribution as first_leaf_distribution
from sandlab.decoding.exact.walks import leaf_mass_bound as leaf_mass_bound
from sandlab.decoding.exact.walks import spectral_gap_formula as spectral_gap_formula
from sandlab.decoding.generators.base import Generator as Generator
from sandlab.decoding.generators.base import WorldGenerator as WorldGenerator
from sandlab.decoding.generators.hugging_face import HuggingFaceGenerator as HuggingFaceGenerator
from sandlab.decoding.generators.hugging_face import LanguageModel as LanguageModel
from sandlab.decoding.generators.hugging_face import load_language_model as load_language_model
from sandlab.decoding.generators.neural import CachedGenerator as CachedGenerator
from sandlab.decoding.generators.neural import ModelGenerator as ModelGenerator
from sandlab.decoding.generators.neural import RecomputingGenerator as RecomputingGenerator
from sandlab.decoding.generators.neural import generator_of as generator_of
from sandlab.decoding.quality import Faithfulness as Faithfulness
from sandlab.decoding.quality import VerifierQuality as VerifierQuality
from sandlab.decoding.quality import draw_quality as draw_quality
from sandlab.decoding.quality import faithfulness as faithfulness
from sandlab.decoding.quality import verifier_quality as verifier_quality
from sandlab.decoding.text import Decoded as Decoded
from sandlab.decoding.text import decode_text as decode_text
from sandlab.decoding.traces import Lifetime as Lifetime
from sandlab.decoding.traces import draw_trace as draw_trace
from sandlab.decoding.traces import lifetimes as lifetimes
from sandlab.decoding.verifiers.base import FunctionVerifier as FunctionVerifier
from sandlab.decoding.verifiers.base import LanguageVerifier as LanguageVerifier
from sandlab.decoding.verifiers.base import NoisyVerifier as NoisyVerifier
from sandlab.decoding.verifiers.base import RandomVerifier as RandomVerifier
from sandlab.decoding.verifiers.base import TextVerifier as TextVerifier
from sandlab.decoding.verifiers.base import Verifier as Verifier
from sandlab.decoding.verifiers.earley import ContextFreeGrammar as ContextFreeGrammar
from sandlab.decoding.verifiers.earley import EarleyVerifier as EarleyVerifier
from sandlab.decoding.verifiers.grammars import GrammarVerifier as GrammarVerifier
from sandlab.decoding.verifiers.grammars import compile_grammar as compile_grammar
from sandlab.decoding.verifiers.regular import AutomatonVerifier as AutomatonVerifier
from sandlab.decoding.verifiers.trained import ProbeNetwork as ProbeNetwork
from sandlab.decoding.verifiers.trained import ProbeVerifier as ProbeVerifier
from sandlab.decoding.verifiers.trained import TrainedProbe as TrainedProbe
from sandlab.decoding.verifiers.trained import last_features as last_features
from sandlab.decoding.verifiers.trained import train_probe as train_probe
from sandlab.decoding.walk_film import Moment as Moment
from sandlab.decoding.walk_film import WalkFilm as WalkFilm
from sandlab.decoding.walk_film import moments as moments

__all__ = [
    "AutomatonVerifier",
    "Backtracking",
    "BestOfN",
    "BlockBestOfN",
    "CachedGenerator",
    "ContextFreeGrammar",
    "Decoded",
    "Decoder",
    "EarleyVerifier",
    "EarlyAbort",
    "ExhaustiveSearch",
    "Faithfulness",
    "FunctionVerifier",
    "Generator",
    "GrammarVerifier",
    "Greedy",
    "HuggingFaceGenerator",
    "LanguageModel",
    "LanguageVerifier",
    "Lifetime",
    "ModelGenerator",
    "Moment",
    "NoisyVerifier",
    "Nucleus",
    "ProbeNetwork",
    "ProbeVerifier",
    "RandomVerifier",
    "RecomputingGenerator",
    "Rejection",
    "Sampling",
    "SinclairJerrum",
    "TableVerifier",
    "Temperature",
    "TextVerifier",
    "TokenwiseRejection",
    "TrainedProbe",
    "Tree",
    "TreeGenerator",
    "TreeWalk",
    "VGB",
    "ValueGuided",
    "Verifier",
    "VerifierQuality",
    "WalkFilm",
    "WorldGenerator",
    "backtracking_distribution",
    "best_of_n_distribution",
    "block_best_of_n_distribution",
    "compile_grammar",
    "decode_text",
    "draw",
    "draw_quality",
    "draw_trace",
    "faithfulness",
    "first_leaf_distribution",
    "generator_of",
    "kl_divergence",
    "last_features",
    "leaf_mass_bound",
    "lifetimes",
    "load_language_model",
    "moments",
    "rejected_prefixes",
    "restricted_distribution",
    "sampling_distribution",
    "scratchpad_decode",
    "search_prefixes",
    "spectral_gap_formula",
    "tokenwise_distribution",
    "total_variation",
    "train_probe",
    "value_guided_distribution",
    "verifier_quality",
    "warp_logits",
]
