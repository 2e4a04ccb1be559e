# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab.decoding.append_protocol import AppendProtocol as AppendProtocol
from sandlab.decoding.append_protocol import AppendReport as AppendReport
from sandlab.decoding.append_protocol import append_prompt as append_prompt
from sandlab.decoding.decoders.adaptive import AdaptiveRejection as AdaptiveRejection
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
from sandlab.decoding.generators.in_generate import generation_strategy as generation_strategy
from sandlab.decoding.generators.in_generate import logits_processor as logits_processor
from sandlab.decoding.generators.neural import CachedGenerator as CachedGenerator
from sandlab.decoding.generators.neural import ModelGenerator as ModelGenerator
from sandlab.decoding.generators.neural import RecomputingGenerator as RecomputingGenerator
from sandlab.decoding.generators.neural import generator_of as generator_of
from sandlab.decoding.parallel.beam import BeamSearch as BeamSearch
from sandlab.decoding.parallel.beam import Searched as Searched
from sandlab.decoding.parallel.beam import distil as distil
from sandlab.decoding.parallel.clique_chain import clique_gibbs_matrix as clique_gibbs_matrix
from sandlab.decoding.parallel.clique_chain import clique_parallel_matrix as clique_parallel_matrix
from sandlab.decoding.parallel.clique_chain import hidden_clique_chance as hidden_clique_chance
from sandlab.decoding.parallel.clique_chain import stuck_bound as stuck_bound
from sandlab.decoding.parallel.clique_chain import stuck_exponent as stuck_exponent
from sandlab.decoding.parallel.clique_chain import visit_bound as visit_bound
from sandlab.decoding.parallel.clique_chain import visit_steps as visit_steps
from sandlab.decoding.parallel.clique_chain import walk_magnetisation as walk_magnetisation
from sandlab.decoding.parallel.films import RefinementFilm as RefinementFilm
from sandlab.decoding.parallel.films import SpinFilm as SpinFilm
from sandlab.decoding.parallel.hitting import distance_curve as distance_curve
from sandlab.decoding.parallel.hitting import expected_hitting_time as expected_hitting_time
from sandlab.decoding.parallel.hitting import survival as survival
from sandlab.decoding.parallel.product_steps import ParallelDecoding as ParallelDecoding
from sandlab.decoding.parallel.product_steps import decoding_matrix as decoding_matrix
from sandlab.decoding.parallel.refine import IterativeRefinement as IterativeRefinement
from sandlab.decoding.parallel.refine import Refined as Refined
from sandlab.decoding.parallel.refine import drop_repeats as drop_repeats
from sandlab.decoding.parallel.samplers import AdaptiveBlockDynamics as AdaptiveBlockDynamics
from sandlab.decoding.parallel.samplers import BlockDynamics as BlockDynamics
from sandlab.decoding.parallel.samplers import Checkerboard as Checkerboard
from sandlab.decoding.parallel.samplers import IndependentParallel as IndependentParallel
from sandlab.decoding.parallel.samplers import KGibbs as KGibbs
from sandlab.decoding.parallel.samplers import SiteSampler as SiteSampler
from sandlab.decoding.parallel.samplers import Trace as Trace
from sandlab.decoding.parallel.samplers import uncertain_sites as uncertain_sites
from sandlab.decoding.parallel.site_models import CliqueSites as CliqueSites
from sandlab.decoding.parallel.site_models import LawSites as LawSites
from sandlab.decoding.parallel.site_models import MaskedModelSites as MaskedModelSites
from sandlab.decoding.parallel.site_models import PairwiseSpins as PairwiseSpins
from sandlab.decoding.parallel.site_models import SiteModel as SiteModel
from sandlab.decoding.quality import Faithfulness as Faithfulness
from sandlab.decoding.quality import VerifierQuality as VerifierQuality
from sandlab.decoding.quality import draw_quality as draw_quality
from sandlab.decoding.quality import faithfulness as faithfulness
from sandlab.decoding.quality import verifier_quality as verifier_quality
from sandlab.decoding.reasoning.rollout import Rollout as Rollout
from sandlab.decoding.reasoning.rollout import cot_rollout as cot_rollout
from sandlab.decoding.results import Decoded as Decoded
from sandlab.decoding.streaming import Piece as Piece
from sandlab.decoding.streaming import stream_text as stream_text
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
from sandlab.decoding.verifiers.healing import HeadVerifier as HeadVerifier
from sandlab.decoding.verifiers.healing import heal_prompt as heal_prompt
from sandlab.decoding.verifiers.regular import AutomatonVerifier as AutomatonVerifier
from sandlab.decoding.verifiers.schemas import TextLanguage as TextLanguage
from sandlab.decoding.verifiers.schemas import compile_grammar as compile_grammar
from sandlab.decoding.verifiers.trained import ProbeNetwork as ProbeNetwork
from sandlab.decoding.verifiers.trained import ProbeVerifier as ProbeVerifier
from sandlab.decoding.verifiers.trained import TrainedProbe as TrainedProbe
from sandlab.decoding.verifiers.trained import last_features as last_features
from sandlab.decoding.verifiers.trained import train_probe as train_probe
from sandlab.decoding.verifiers.values import Rollouts as Rollouts
from sandlab.decoding.verifiers.values import TrainedValue as TrainedValue
from sandlab.decoding.verifiers.values import ValueFunction as ValueFunction
from sandlab.decoding.verifiers.values import collect_rollouts as collect_rollouts
from sandlab.decoding.verifiers.values import train_value as train_value
from sandlab.decoding.walk_film import Moment as Moment
from sandlab.decoding.walk_film import WalkFilm as WalkFilm
from sandlab.decoding.walk_film import moments as moments

__all__ = [
    "AdaptiveBlockDynamics",
    "AdaptiveRejection",
    "AppendProtocol",
    "AppendReport",
    "AutomatonVerifier",
    "Backtracking",
    "BeamSearch",
    "BestOfN",
    "BlockBestOfN",
    "BlockDynamics",
    "CachedGenerator",
    "Checkerboard",
    "CliqueSites",
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
    "HeadVerifier",
    "HuggingFaceGenerator",
    "IndependentParallel",
    "IterativeRefinement",
    "KGibbs",
    "LanguageModel",
    "LanguageVerifier",
    "LawSites",
    "Lifetime",
    "MaskedModelSites",
    "ModelGenerator",
    "Moment",
    "NoisyVerifier",
    "Nucleus",
    "PairwiseSpins",
    "ParallelDecoding",
    "Piece",
    "ProbeNetwork",
    "ProbeVerifier",
    "RandomVerifier",
    "RecomputingGenerator",
    "Refined",
    "RefinementFilm",
    "Rejection",
    "Rollout",
    "Rollouts",
    "Sampling",
    "Searched",
    "SinclairJerrum",
    "SiteModel",
    "SiteSampler",
    "SpinFilm",
    "TableVerifier",
    "Temperature",
    "TextLanguage",
    "TextVerifier",
    "TokenwiseRejection",
    "Trace",
    "TrainedProbe",
    "TrainedValue",
    "Tree",
    "TreeGenerator",
    "TreeWalk",
    "VGB",
    "ValueFunction",
    "ValueGuided",
    "Verifier",
    "VerifierQuality",
    "WalkFilm",
    "WorldGenerator",
    "append_prompt",
    "backtracking_distribution",
    "best_of_n_distribution",
    "block_best_of_n_distribution",
    "clique_gibbs_matrix",
    "clique_parallel_matrix",
    "collect_rollouts",
    "compile_grammar",
    "cot_rollout",
    "decode_text",
    "decoding_matrix",
    "distance_curve",
    "distil",
    "draw",
    "draw_quality",
    "draw_trace",
    "drop_repeats",
    "expected_hitting_time",
    "faithfulness",
    "first_leaf_distribution",
    "generation_strategy",
    "generator_of",
    "heal_prompt",
    "hidden_clique_chance",
    "kl_divergence",
    "last_features",
    "leaf_mass_bound",
    "lifetimes",
    "load_language_model",
    "logits_processor",
    "moments",
    "rejected_prefixes",
    "restricted_distribution",
    "sampling_distribution",
    "scratchpad_decode",
    "search_prefixes",
    "spectral_gap_formula",
    "stream_text",
    "stuck_bound",
    "stuck_exponent",
    "survival",
    "tokenwise_distribution",
    "total_variation",
    "train_probe",
    "train_value",
    "uncertain_sites",
    "value_guided_distribution",
    "verifier_quality",
    "visit_bound",
    "visit_steps",
    "walk_magnetisation",
    "warp_logits",
]
