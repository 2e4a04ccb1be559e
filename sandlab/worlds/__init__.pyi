# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab.worlds.automata.addition import Addition as Addition
from sandlab.worlds.automata.addition import adder_as_flip_flop as adder_as_flip_flop
from sandlab.worlds.automata.addition import addition_prompt as addition_prompt
from sandlab.worlds.automata.addition import carries as carries
from sandlab.worlds.automata.algebra.groups import FiniteGroup as FiniteGroup
from sandlab.worlds.automata.algebra.groups import group_name as group_name
from sandlab.worlds.automata.algebra.holonomy import Component as Component
from sandlab.worlds.automata.algebra.holonomy import Holonomy as Holonomy
from sandlab.worlds.automata.algebra.holonomy import Move as Move
from sandlab.worlds.automata.algebra.holonomy import holonomy as holonomy
from sandlab.worlds.automata.algebra.semigroups import Semigroup as Semigroup
from sandlab.worlds.automata.algebra.semigroups import enumerate_semigroup as enumerate_semigroup
from sandlab.worlds.automata.algebra.series import Embedding as Embedding
from sandlab.worlds.automata.algebra.series import Series as Series
from sandlab.worlds.automata.algebra.series import composition_series as composition_series
from sandlab.worlds.automata.algebra.series import core as core
from sandlab.worlds.automata.algebra.series import core_free_subgroup as core_free_subgroup
from sandlab.worlds.automata.algebra.series import is_solvable as is_solvable
from sandlab.worlds.automata.algebra.series import universal_embedding as universal_embedding
from sandlab.worlds.automata.algebra.towers import draw_tower as draw_tower
from sandlab.worlds.automata.catalogue import DEPTH_TABLE as DEPTH_TABLE
from sandlab.worlds.automata.catalogue import machine_names as machine_names
from sandlab.worlds.automata.catalogue import named_machine as named_machine
from sandlab.worlds.automata.counters import Cyclic as Cyclic
from sandlab.worlds.automata.counters import CyclicProduct as CyclicProduct
from sandlab.worlds.automata.counters import Grid as Grid
from sandlab.worlds.automata.counters import GridProduct as GridProduct
from sandlab.worlds.automata.counters import Memory as Memory
from sandlab.worlds.automata.drawing import draw_cayley_graph as draw_cayley_graph
from sandlab.worlds.automata.drawing import draw_machine as draw_machine
from sandlab.worlds.automata.drawing import draw_multiplication_table as draw_multiplication_table
from sandlab.worlds.automata.drawing import draw_rubik_net as draw_rubik_net
from sandlab.worlds.automata.expressions import Expression as Expression
from sandlab.worlds.automata.expressions import parse as parse
from sandlab.worlds.automata.family import Family as Family
from sandlab.worlds.automata.languages import Abab as Abab
from sandlab.worlds.automata.languages import from_regex as from_regex
from sandlab.worlds.automata.languages import minimal as minimal
from sandlab.worlds.automata.machine import Automaton as Automaton
from sandlab.worlds.automata.machine import as_table as as_table
from sandlab.worlds.automata.products import canonical as canonical
from sandlab.worlds.automata.products import cascade_product as cascade_product
from sandlab.worlds.automata.products import direct_product as direct_product
from sandlab.worlds.automata.products import from_generators as from_generators
from sandlab.worlds.automata.products import permutation_reset as permutation_reset
from sandlab.worlds.automata.products import random_automaton as random_automaton
from sandlab.worlds.automata.products import wreath_product as wreath_product
from sandlab.worlds.automata.reading import from_json as from_json
from sandlab.worlds.automata.reading import read_machine as read_machine
from sandlab.worlds.automata.rotations import AlternatingGroup as AlternatingGroup
from sandlab.worlds.automata.rotations import Dihedral as Dihedral
from sandlab.worlds.automata.rotations import Quaternion as Quaternion
from sandlab.worlds.automata.rotations import SymmetricGroup as SymmetricGroup
from sandlab.worlds.automata.rubik import RUBIK_TURNS as RUBIK_TURNS
from sandlab.worlds.automata.rubik import RubiksCube as RubiksCube
from sandlab.worlds.automata.stacks import DyckStack as DyckStack
from sandlab.worlds.base import Batch as Batch
from sandlab.worlds.base import Predictor as Predictor
from sandlab.worlds.base import World as World
from sandlab.worlds.base import cross_entropy as cross_entropy
from sandlab.worlds.diffusions.circle import CircleLangevin as CircleLangevin
from sandlab.worlds.diffusions.circle import UniformContrast as UniformContrast
from sandlab.worlds.diffusions.circle import circle_contrast_constant as circle_contrast_constant
from sandlab.worlds.diffusions.contrast import ContrastLaw as ContrastLaw
from sandlab.worlds.diffusions.contrast import EmpiricalContrast as EmpiricalContrast
from sandlab.worlds.diffusions.contrast import GaussianContrast as GaussianContrast
from sandlab.worlds.diffusions.contrast import NearbyContrast as NearbyContrast
from sandlab.worlds.diffusions.contrast import StationaryContrast as StationaryContrast
from sandlab.worlds.diffusions.grid import GridChain as GridChain
from sandlab.worlds.diffusions.grid import PlaneGrid as PlaneGrid
from sandlab.worlds.diffusions.pairs import ContrastivePairs as ContrastivePairs
from sandlab.worlds.diffusions.pairs import Pairs as Pairs
from sandlab.worlds.diffusions.pairs import StoredPairs as StoredPairs
from sandlab.worlds.diffusions.pairs import labelled_batch as labelled_batch
from sandlab.worlds.diffusions.pairs import make_pairs as make_pairs
from sandlab.worlds.diffusions.potentials import CirclePotential as CirclePotential
from sandlab.worlds.diffusions.potentials import DoubleWell as DoubleWell
from sandlab.worlds.diffusions.potentials import LogCosh as LogCosh
from sandlab.worlds.diffusions.potentials import Potential as Potential
from sandlab.worlds.diffusions.potentials import PseudoHuber as PseudoHuber
from sandlab.worlds.diffusions.potentials import Quadratic as Quadratic
from sandlab.worlds.diffusions.potentials import Quartic as Quartic
from sandlab.worlds.diffusions.processes import Diffusion as Diffusion
from sandlab.worlds.diffusions.processes import ItoDiffusion as ItoDiffusion
from sandlab.worlds.diffusions.processes import Langevin as Langevin
from sandlab.worlds.diffusions.processes import OrnsteinUhlenbeck as OrnsteinUhlenbeck
from sandlab.worlds.diffusions.processes import euler_kernel as euler_kernel
from sandlab.worlds.distillation.chart import Band as Band
from sandlab.worlds.distillation.chart import inside_charts as inside_charts
from sandlab.worlds.distillation.chart import next_token_probs as next_token_probs
from sandlab.worlds.distillation.chart import sentence_probs as sentence_probs
from sandlab.worlds.distillation.chart import token_posteriors as token_posteriors
from sandlab.worlds.distillation.derivations import Derivations as Derivations
from sandlab.worlds.distillation.derivations import Sentences as Sentences
from sandlab.worlds.distillation.derivations import derivations as derivations
from sandlab.worlds.distillation.derivations import sample_sentences as sample_sentences
from sandlab.worlds.distillation.diagrams import draw_decision_tree as draw_decision_tree
from sandlab.worlds.distillation.diagrams import draw_derivation as draw_derivation
from sandlab.worlds.distillation.diagrams import draw_rules as draw_rules
from sandlab.worlds.distillation.grammar_tasks import BoundaryGrammar as BoundaryGrammar
from sandlab.worlds.distillation.grammar_tasks import MaskedGrammar as MaskedGrammar
from sandlab.worlds.distillation.grammar_tasks import WindowOracle as WindowOracle
from sandlab.worlds.distillation.grammar_tasks import boundaries as boundaries
from sandlab.worlds.distillation.parities import HierarchicalParity as HierarchicalParity
from sandlab.worlds.distillation.parities import SparseParity as SparseParity
from sandlab.worlds.distillation.pcfg import PCFG as PCFG
from sandlab.worlds.distillation.pcfg import Production as Production
from sandlab.worlds.distillation.synthetic_grammars import GRAMMARS as GRAMMARS
from sandlab.worlds.distillation.synthetic_grammars import grammar as grammar
from sandlab.worlds.distillation.text import MaskedText as MaskedText
from sandlab.worlds.distillation.text import substitute_text as substitute_text
from sandlab.worlds.dyck.brackets import BracketError as BracketError
from sandlab.worlds.dyck.brackets import BracketScan as BracketScan
from sandlab.worlds.dyck.brackets import count_completions as count_completions
from sandlab.worlds.dyck.brackets import count_words as count_words
from sandlab.worlds.dyck.brackets import first_error as first_error
from sandlab.worlds.dyck.brackets import scan_brackets as scan_brackets
from sandlab.worlds.dyck.copying import DyckCopy as DyckCopy
from sandlab.worlds.dyck.language import Dyck as Dyck
from sandlab.worlds.dyck.nested_prefix import NestedPrefix as NestedPrefix
from sandlab.worlds.export import WorldDataset as WorldDataset
from sandlab.worlds.export import read_parquet as read_parquet
from sandlab.worlds.export import to_huggingface as to_huggingface
from sandlab.worlds.export import to_parquet as to_parquet
from sandlab.worlds.expressivity.communication import IndexProblem as IndexProblem
from sandlab.worlds.expressivity.communication import Majority as Majority
from sandlab.worlds.expressivity.communication import SetDisjointness as SetDisjointness
from sandlab.worlds.expressivity.program_tasks import ProgramTask as ProgramTask
from sandlab.worlds.expressivity.program_tasks import TASKS as TASKS
from sandlab.worlds.expressivity.regression import InContextRegression as InContextRegression
from sandlab.worlds.flip_flop.language import FlipFlop as FlipFlop
from sandlab.worlds.flip_flop.language import FlipFlopTransduction as FlipFlopTransduction
from sandlab.worlds.flip_flop.language import chat_prompt as chat_prompt
from sandlab.worlds.flip_flop.light_switch import LightSwitchStory as LightSwitchStory
from sandlab.worlds.flip_flop.light_switch import light_switch_text as light_switch_text
from sandlab.worlds.hmm.doubly_stochastic import birkhoff as birkhoff
from sandlab.worlds.hmm.doubly_stochastic import circulant as circulant
from sandlab.worlds.hmm.doubly_stochastic import random_doubly_stochastic as random_doubly_stochastic
from sandlab.worlds.hmm.doubly_stochastic import sinkhorn as sinkhorn
from sandlab.worlds.hmm.doubly_stochastic import sinkhorn_jacobian as sinkhorn_jacobian
from sandlab.worlds.hmm.doubly_stochastic import symmetric_doubly_stochastic as symmetric_doubly_stochastic
from sandlab.worlds.hmm.doubly_stochastic import three_cycle as three_cycle
from sandlab.worlds.hmm.instances import HMM_INSTANCES as HMM_INSTANCES
from sandlab.worlds.hmm.instances import make_ghmm as make_ghmm
from sandlab.worlds.hmm.instances import make_hmm as make_hmm
from sandlab.worlds.hmm.instances import named_hmm as named_hmm
from sandlab.worlds.hmm.instances import random_ghmm as random_ghmm
from sandlab.worlds.hmm.instances import random_hmm as random_hmm
from sandlab.worlds.hmm.masked import MaskedPrediction as MaskedPrediction
from sandlab.worlds.hmm.masked import MaskedStrings as MaskedStrings
from sandlab.worlds.hmm.models import GaussianHMM as GaussianHMM
from sandlab.worlds.hmm.models import HMM as HMM
from sandlab.worlds.hmm.models import LatentChain as LatentChain
from sandlab.worlds.hmm.tasks import MaskedTask as MaskedTask
from sandlab.worlds.hmm.twins import gap_one_twin as gap_one_twin
from sandlab.worlds.hmm.twins import householder as householder
from sandlab.worlds.hmm.twins import householder_transitions as householder_transitions
from sandlab.worlds.hmm.twins import orbit as orbit
from sandlab.worlds.hmm.twins import posterior_sphere as posterior_sphere
from sandlab.worlds.hmm.twins import power_range as power_range
from sandlab.worlds.hmm.twins import power_twin as power_twin
from sandlab.worlds.hmm.twins import reflected_ghmm as reflected_ghmm
from sandlab.worlds.hmm.twins import rotation_about_ones as rotation_about_ones
from sandlab.worlds.hmm.twins import valid_angles as valid_angles
from sandlab.worlds.knowledge.associations import Associations as Associations
from sandlab.worlds.knowledge.facts import FactRecall as FactRecall
from sandlab.worlds.markov.bigram_text import BigramBackcopy as BigramBackcopy
from sandlab.worlds.markov.bigram_text import BigramTrigger as BigramTrigger
from sandlab.worlds.markov.bigram_text import last_occurrence as last_occurrence
from sandlab.worlds.markov.causal_graphs import InContextDag as InContextDag
from sandlab.worlds.markov.causal_graphs import InContextTree as InContextTree
from sandlab.worlds.markov.causal_graphs import chain_parents as chain_parents
from sandlab.worlds.markov.causal_graphs import lag_parents as lag_parents
from sandlab.worlds.markov.causal_graphs import pair_parents as pair_parents
from sandlab.worlds.markov.causal_graphs import random_parents as random_parents
from sandlab.worlds.markov.causal_graphs import skip_parents as skip_parents
from sandlab.worlds.markov.chain import InContextMarkov as InContextMarkov
from sandlab.worlds.markov.chain import MarkovChain as MarkovChain
from sandlab.worlds.markov.chain import context_indices as context_indices
from sandlab.worlds.markov.chain import next_token_batch as next_token_batch
from sandlab.worlds.markov.chain import window_tokens as window_tokens
from sandlab.worlds.markov.interleaved import InterleavedChains as InterleavedChains
from sandlab.worlds.markov.lifted import conditional_distribution as conditional_distribution
from sandlab.worlds.markov.lifted import lifted_chain as lifted_chain
from sandlab.worlds.markov.lifted import order_of as order_of
from sandlab.worlds.markov.lifted import positive_stationary_distribution as positive_stationary_distribution
from sandlab.worlds.markov.lifted import stationary_distribution as stationary_distribution
from sandlab.worlds.markov.lifted import token_distribution as token_distribution
from sandlab.worlds.markov.lifted import window_distribution as window_distribution
from sandlab.worlds.markov.posterior import SampledBayes as SampledBayes
from sandlab.worlds.markov.posterior import stationary_bayes as stationary_bayes
from sandlab.worlds.markov.stationary_start import binary_bayes as binary_bayes
from sandlab.worlds.markov.stationary_start import binary_next_probs as binary_next_probs
from sandlab.worlds.markov.structure import chow_liu as chow_liu
from sandlab.worlds.markov.structure import pair_frequencies as pair_frequencies
from sandlab.worlds.markov.structure import position_information as position_information
from sandlab.worlds.mixture import Mixture as Mixture
from sandlab.worlds.nce.exponential_family import ExponentialFamily as ExponentialFamily
from sandlab.worlds.nce.exponential_family import as_parameter as as_parameter
from sandlab.worlds.nce.families import BernoulliProduct as BernoulliProduct
from sandlab.worlds.nce.families import CategoricalFamily as CategoricalFamily
from sandlab.worlds.nce.families import DiagonalGaussian as DiagonalGaussian
from sandlab.worlds.nce.families import GaussianMean as GaussianMean
from sandlab.worlds.nce.families import PoissonFamily as PoissonFamily
from sandlab.worlds.nce.gaussians import Contrast as Contrast
from sandlab.worlds.nce.gaussians import DensityChasm as DensityChasm
from sandlab.worlds.nce.gaussians import DiagonalGaussians as DiagonalGaussians
from sandlab.worlds.nce.gaussians import ExponentialContrast as ExponentialContrast
from sandlab.worlds.nce.gaussians import GaussianMeans as GaussianMeans
from sandlab.worlds.nce.image_contrast import ImageContrast as ImageContrast
from sandlab.worlds.nce.image_contrast import read_idx as read_idx
from sandlab.worlds.ngrams.estimators import CountingEstimator as CountingEstimator
from sandlab.worlds.ngrams.estimators import UniformEstimator as UniformEstimator
from sandlab.worlds.ngrams.estimators import naming as naming
from sandlab.worlds.ngrams.estimators import ngram_estimators as ngram_estimators
from sandlab.worlds.ngrams.estimators import ngram_name as ngram_name
from sandlab.worlds.ngrams.in_context import InContextNgrams as InContextNgrams
from sandlab.worlds.ngrams.in_context import spread_kernel as spread_kernel
from sandlab.worlds.parallel.clique import IsingClique as IsingClique
from sandlab.worlds.parallel.clique import IsingConditions as IsingConditions
from sandlab.worlds.parallel.clique import mode_of as mode_of
from sandlab.worlds.parallel.clique import separating_clique as separating_clique
from sandlab.worlds.parallel.families import DiscreteFamily as DiscreteFamily
from sandlab.worlds.parallel.families import Ising as Ising
from sandlab.worlds.parallel.families import MaskedWorld as MaskedWorld
from sandlab.worlds.parallel.families import draw_masks as draw_masks
from sandlab.worlds.parallel.families import pair_agreement as pair_agreement
from sandlab.worlds.parallel.finite import FiniteLaw as FiniteLaw
from sandlab.worlds.parallel.finite import MaskLaw as MaskLaw
from sandlab.worlds.parallel.finite import enumerate_states as enumerate_states
from sandlab.worlds.parallel.finite import size_masks as size_masks
from sandlab.worlds.parallel.heat_bath import block_matrix as block_matrix
from sandlab.worlds.parallel.heat_bath import parallel_matrix as parallel_matrix
from sandlab.worlds.parallel.hidden_tokens import HiddenTokens as HiddenTokens
from sandlab.worlds.parallel.sentence_pairs import AlignedText as AlignedText
from sandlab.worlds.parallel.sentence_pairs import SentencePairs as SentencePairs
from sandlab.worlds.parallel.subwords import Subwords as Subwords
from sandlab.worlds.parallel.translation import END as END
from sandlab.worlds.parallel.translation import MASK as MASK
from sandlab.worlds.parallel.translation import PAD as PAD
from sandlab.worlds.parallel.translation import RESERVED as RESERVED
from sandlab.worlds.parallel.translation import START as START
from sandlab.worlds.parallel.translation import ToyTranslation as ToyTranslation
from sandlab.worlds.parallel.translation import TranslationWorld as TranslationWorld
from sandlab.worlds.reasoning.actions import GroupAction as GroupAction
from sandlab.worlds.reasoning.actions import MATCHED_PAIRS as MATCHED_PAIRS
from sandlab.worlds.reasoning.actions import as_action as as_action
from sandlab.worlds.reasoning.actions import coset_action as coset_action
from sandlab.worlds.reasoning.actions import cyclic_action as cyclic_action
from sandlab.worlds.reasoning.actions import named_action as named_action
from sandlab.worlds.reasoning.actions import regular_action as regular_action
from sandlab.worlds.reasoning.actions import symmetric_action as symmetric_action
from sandlab.worlds.reasoning.actions import table_action as table_action
from sandlab.worlds.reasoning.boolean_circuits import CircuitEvaluation as CircuitEvaluation
from sandlab.worlds.reasoning.boolean_circuits import GATES as GATES
from sandlab.worlds.reasoning.clauses import ClauseWorld as ClauseWorld
from sandlab.worlds.reasoning.clauses import SLOTS as SLOTS
from sandlab.worlds.reasoning.clauses import certain as certain
from sandlab.worlds.reasoning.clauses import distinct as distinct
from sandlab.worlds.reasoning.graphs import GraphConnectivity as GraphConnectivity
from sandlab.worlds.reasoning.graphs import MultiHopReasoning as MultiHopReasoning
from sandlab.worlds.reasoning.graphs import reachable as reachable
from sandlab.worlds.reasoning.lego import BinaryLego as BinaryLego
from sandlab.worlds.reasoning.lego import FixedLego as FixedLego
from sandlab.worlds.reasoning.lego import Lego as Lego
from sandlab.worlds.reasoning.lego import track_values as track_values
from sandlab.worlds.reasoning.word_problem import WordProblem as WordProblem
from sandlab.worlds.recall import AssociativeRecall as AssociativeRecall
from sandlab.worlds.recall import CopyString as CopyString
from sandlab.worlds.recall import InductionTask as InductionTask
from sandlab.worlds.recall import KHopInduction as KHopInduction
from sandlab.worlds.recall import NeedleRetrieval as NeedleRetrieval
from sandlab.worlds.topics.corpus import TopicCorpus as TopicCorpus
from sandlab.worlds.topics.documents import DisjointTopics as DisjointTopics
from sandlab.worlds.topics.documents import LDATopics as LDATopics
from sandlab.worlds.topics.documents import TopicWorld as TopicWorld
from sandlab.worlds.topics.documents import corrupt as corrupt
from sandlab.worlds.topics.documents import posterior_mean as posterior_mean
from sandlab.worlds.topics.growing import GrowingTopics as GrowingTopics
from sandlab.worlds.topics.masked import MaskedWords as MaskedWords
from sandlab.worlds.topics.masking import InfiniteDocuments as InfiniteDocuments
from sandlab.worlds.topics.masking import MaskedStatistics as MaskedStatistics
from sandlab.worlds.topics.masking import check_masking as check_masking
from sandlab.worlds.topics.masking import topic_of_word as topic_of_word
from sandlab.worlds.topics.pseudo_wiki import PseudoWiki as PseudoWiki
from sandlab.worlds.topics.text import TextCorpus as TextCorpus
from sandlab.worlds.topics.text import TopicText as TopicText
from sandlab.worlds.topics.text import read_documents as read_documents
from sandlab.worlds.topics.text import split_words as split_words
from sandlab.worlds.topics.text import tokenize as tokenize
from sandlab.worlds.verifier.append_cases import AppendCases as AppendCases
from sandlab.worlds.verifier.append_cases import MEANINGFUL as MEANINGFUL
from sandlab.worlds.verifier.append_cases import OOD_NAMES as OOD_NAMES
from sandlab.worlds.verifier.append_checking import CaseError as CaseError
from sandlab.worlds.verifier.append_checking import CaseScore as CaseScore
from sandlab.worlds.verifier.append_checking import ParsedCase as ParsedCase
from sandlab.worlds.verifier.append_checking import can_be_completed as can_be_completed
from sandlab.worlds.verifier.append_checking import count_distinct as count_distinct
from sandlab.worlds.verifier.append_checking import find_error as find_error
from sandlab.worlds.verifier.append_checking import is_plain as is_plain
from sandlab.worlds.verifier.append_checking import parse_cases as parse_cases
from sandlab.worlds.verifier.append_checking import score_cases as score_cases
from sandlab.worlds.verifier.append_prefixes import LabelledPrefixes as LabelledPrefixes
from sandlab.worlds.verifier.append_prefixes import label_prefixes as label_prefixes
from sandlab.worlds.verifier.constrained import AllZeros as AllZeros
from sandlab.worlds.verifier.constrained import BitTask as BitTask
from sandlab.worlds.verifier.constrained import HiddenParity as HiddenParity
from sandlab.worlds.verifier.constrained import SomeZero as SomeZero
from sandlab.worlds.verifier.json_records import JsonRecords as JsonRecords
from sandlab.worlds.verifier.knapsack import Knapsack as Knapsack
from sandlab.worlds.verifier.knapsack import knapsack_density as knapsack_density
from sandlab.worlds.verifier.knapsack import knapsack_table as knapsack_table
from sandlab.worlds.verifier.knapsack import solve_knapsack as solve_knapsack
from sandlab.worlds.verifier.knapsack import solve_superincreasing as solve_superincreasing
from sandlab.worlds.verifier.modular_sum import ModularSum as ModularSum

__all__ = [
    "Abab",
    "Addition",
    "AlignedText",
    "AllZeros",
    "AlternatingGroup",
    "AppendCases",
    "Associations",
    "AssociativeRecall",
    "Automaton",
    "Band",
    "Batch",
    "BernoulliProduct",
    "BigramBackcopy",
    "BigramTrigger",
    "BinaryLego",
    "BitTask",
    "BoundaryGrammar",
    "BracketError",
    "BracketScan",
    "CaseError",
    "CaseScore",
    "CategoricalFamily",
    "CircleLangevin",
    "CirclePotential",
    "CircuitEvaluation",
    "ClauseWorld",
    "Component",
    "Contrast",
    "ContrastLaw",
    "ContrastivePairs",
    "CopyString",
    "CountingEstimator",
    "Cyclic",
    "CyclicProduct",
    "DEPTH_TABLE",
    "DensityChasm",
    "Derivations",
    "DiagonalGaussian",
    "DiagonalGaussians",
    "Diffusion",
    "Dihedral",
    "DiscreteFamily",
    "DisjointTopics",
    "DoubleWell",
    "Dyck",
    "DyckCopy",
    "DyckStack",
    "END",
    "Embedding",
    "EmpiricalContrast",
    "ExponentialContrast",
    "ExponentialFamily",
    "Expression",
    "FactRecall",
    "Family",
    "FiniteGroup",
    "FiniteLaw",
    "FixedLego",
    "FlipFlop",
    "FlipFlopTransduction",
    "GATES",
    "GRAMMARS",
    "GaussianContrast",
    "GaussianHMM",
    "GaussianMean",
    "GaussianMeans",
    "GraphConnectivity",
    "Grid",
    "GridChain",
    "GridProduct",
    "GroupAction",
    "GrowingTopics",
    "HMM",
    "HMM_INSTANCES",
    "HiddenParity",
    "HiddenTokens",
    "HierarchicalParity",
    "Holonomy",
    "ImageContrast",
    "InContextDag",
    "InContextMarkov",
    "InContextNgrams",
    "InContextRegression",
    "InContextTree",
    "IndexProblem",
    "InductionTask",
    "InfiniteDocuments",
    "InterleavedChains",
    "Ising",
    "IsingClique",
    "IsingConditions",
    "ItoDiffusion",
    "JsonRecords",
    "KHopInduction",
    "Knapsack",
    "LDATopics",
    "LabelledPrefixes",
    "Langevin",
    "LatentChain",
    "Lego",
    "LightSwitchStory",
    "LogCosh",
    "MASK",
    "MATCHED_PAIRS",
    "MEANINGFUL",
    "Majority",
    "MarkovChain",
    "MaskLaw",
    "MaskedGrammar",
    "MaskedPrediction",
    "MaskedStatistics",
    "MaskedStrings",
    "MaskedTask",
    "MaskedText",
    "MaskedWords",
    "MaskedWorld",
    "Memory",
    "Mixture",
    "ModularSum",
    "Move",
    "MultiHopReasoning",
    "NearbyContrast",
    "NeedleRetrieval",
    "NestedPrefix",
    "OOD_NAMES",
    "OrnsteinUhlenbeck",
    "PAD",
    "PCFG",
    "Pairs",
    "ParsedCase",
    "PlaneGrid",
    "PoissonFamily",
    "Potential",
    "Predictor",
    "Production",
    "ProgramTask",
    "PseudoHuber",
    "PseudoWiki",
    "Quadratic",
    "Quartic",
    "Quaternion",
    "RESERVED",
    "RUBIK_TURNS",
    "RubiksCube",
    "SLOTS",
    "START",
    "SampledBayes",
    "Semigroup",
    "SentencePairs",
    "Sentences",
    "Series",
    "SetDisjointness",
    "SomeZero",
    "SparseParity",
    "StationaryContrast",
    "StoredPairs",
    "Subwords",
    "SymmetricGroup",
    "TASKS",
    "TextCorpus",
    "TopicCorpus",
    "TopicText",
    "TopicWorld",
    "ToyTranslation",
    "TranslationWorld",
    "UniformContrast",
    "UniformEstimator",
    "WindowOracle",
    "WordProblem",
    "World",
    "WorldDataset",
    "adder_as_flip_flop",
    "addition_prompt",
    "as_action",
    "as_parameter",
    "as_table",
    "binary_bayes",
    "binary_next_probs",
    "birkhoff",
    "block_matrix",
    "boundaries",
    "can_be_completed",
    "canonical",
    "carries",
    "cascade_product",
    "certain",
    "chain_parents",
    "chat_prompt",
    "check_masking",
    "chow_liu",
    "circle_contrast_constant",
    "circulant",
    "composition_series",
    "conditional_distribution",
    "context_indices",
    "core",
    "core_free_subgroup",
    "corrupt",
    "coset_action",
    "count_completions",
    "count_distinct",
    "count_words",
    "cross_entropy",
    "cyclic_action",
    "derivations",
    "direct_product",
    "distinct",
    "draw_cayley_graph",
    "draw_decision_tree",
    "draw_derivation",
    "draw_machine",
    "draw_masks",
    "draw_multiplication_table",
    "draw_rubik_net",
    "draw_rules",
    "draw_tower",
    "enumerate_semigroup",
    "enumerate_states",
    "euler_kernel",
    "find_error",
    "first_error",
    "from_generators",
    "from_json",
    "from_regex",
    "gap_one_twin",
    "grammar",
    "group_name",
    "holonomy",
    "householder",
    "householder_transitions",
    "inside_charts",
    "is_plain",
    "is_solvable",
    "knapsack_density",
    "knapsack_table",
    "label_prefixes",
    "labelled_batch",
    "lag_parents",
    "last_occurrence",
    "lifted_chain",
    "light_switch_text",
    "machine_names",
    "make_ghmm",
    "make_hmm",
    "make_pairs",
    "minimal",
    "mode_of",
    "named_action",
    "named_hmm",
    "named_machine",
    "naming",
    "next_token_batch",
    "next_token_probs",
    "ngram_estimators",
    "ngram_name",
    "orbit",
    "order_of",
    "pair_agreement",
    "pair_frequencies",
    "pair_parents",
    "parallel_matrix",
    "parse",
    "parse_cases",
    "permutation_reset",
    "position_information",
    "positive_stationary_distribution",
    "posterior_mean",
    "posterior_sphere",
    "power_range",
    "power_twin",
    "random_automaton",
    "random_doubly_stochastic",
    "random_ghmm",
    "random_hmm",
    "random_parents",
    "reachable",
    "read_documents",
    "read_idx",
    "read_machine",
    "read_parquet",
    "reflected_ghmm",
    "regular_action",
    "rotation_about_ones",
    "sample_sentences",
    "scan_brackets",
    "score_cases",
    "sentence_probs",
    "separating_clique",
    "sinkhorn",
    "sinkhorn_jacobian",
    "size_masks",
    "skip_parents",
    "solve_knapsack",
    "solve_superincreasing",
    "split_words",
    "spread_kernel",
    "stationary_bayes",
    "stationary_distribution",
    "substitute_text",
    "symmetric_action",
    "symmetric_doubly_stochastic",
    "table_action",
    "three_cycle",
    "to_huggingface",
    "to_parquet",
    "token_distribution",
    "token_posteriors",
    "tokenize",
    "topic_of_word",
    "track_values",
    "universal_embedding",
    "valid_angles",
    "window_distribution",
    "window_tokens",
    "wreath_product",
]
