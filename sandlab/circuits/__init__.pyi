# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab.circuits.attention_primitives import running_average as running_average
from sandlab.circuits.attention_primitives import select_largest as select_largest
from sandlab.circuits.automata.atoms import counter_circuit as counter_circuit
from sandlab.circuits.automata.atoms import memory_circuit as memory_circuit
from sandlab.circuits.automata.atoms import sine_counter_circuit as sine_counter_circuit
from sandlab.circuits.automata.atoms import truncated_counter as truncated_counter
from sandlab.circuits.automata.compiler import METHODS as METHODS
from sandlab.circuits.automata.compiler import MethodReport as MethodReport
from sandlab.circuits.automata.compiler import compare_methods as compare_methods
from sandlab.circuits.automata.compiler import compile as compile
from sandlab.circuits.automata.compiler import verify as verify
from sandlab.circuits.automata.every_start import count_errors_together as count_errors_together
from sandlab.circuits.automata.every_start import layers_in_common as layers_in_common
from sandlab.circuits.automata.gridworld import gridworld_circuit as gridworld_circuit
from sandlab.circuits.automata.gridworld_algorithm import WalkTrace as WalkTrace
from sandlab.circuits.automata.gridworld_algorithm import grid_moves as grid_moves
from sandlab.circuits.automata.gridworld_algorithm import walk_by_boundaries as walk_by_boundaries
from sandlab.circuits.automata.group_circuits import direct_product_circuit as direct_product_circuit
from sandlab.circuits.automata.group_circuits import group_circuit as group_circuit
from sandlab.circuits.automata.group_circuits import letter_group as letter_group
from sandlab.circuits.automata.group_circuits import semidirect_circuit as semidirect_circuit
from sandlab.circuits.automata.group_circuits import series_circuit as series_circuit
from sandlab.circuits.automata.group_circuits import wreath_circuit as wreath_circuit
from sandlab.circuits.automata.krohn_rhodes import DepthReport as DepthReport
from sandlab.circuits.automata.krohn_rhodes import depth_report as depth_report
from sandlab.circuits.automata.krohn_rhodes import krohn_rhodes_circuit as krohn_rhodes_circuit
from sandlab.circuits.automata.krohn_rhodes import require_solvable as require_solvable
from sandlab.circuits.automata.permutation_reset import permutation_reset_circuit as permutation_reset_circuit
from sandlab.circuits.automata.programs import AbelianProgram as AbelianProgram
from sandlab.circuits.automata.programs import DirectProgram as DirectProgram
from sandlab.circuits.automata.programs import GroupProgram as GroupProgram
from sandlab.circuits.automata.programs import SemidirectProgram as SemidirectProgram
from sandlab.circuits.automata.programs import WreathProgram as WreathProgram
from sandlab.circuits.automata.programs import direct_program as direct_program
from sandlab.circuits.automata.programs import group_program as group_program
from sandlab.circuits.automata.programs import semidirect_program as semidirect_program
from sandlab.circuits.automata.programs import series_program as series_program
from sandlab.circuits.automata.programs import wreath_program as wreath_program
from sandlab.circuits.automata.scan import scan_circuit as scan_circuit
from sandlab.circuits.automata.step_by_step import rnn_circuit as rnn_circuit
from sandlab.circuits.automata.step_by_step import sequential_circuit as sequential_circuit
from sandlab.circuits.builder import CircuitBuilder as CircuitBuilder
from sandlab.circuits.builder import CircuitLayer as CircuitLayer
from sandlab.circuits.builder import Head as Head
from sandlab.circuits.computation import animate_computation as animate_computation
from sandlab.circuits.computation import draw_computation as draw_computation
from sandlab.circuits.computation import reading_paths as reading_paths
from sandlab.circuits.distillation.parity_transformers import parity_by_selection as parity_by_selection
from sandlab.circuits.distillation.parity_transformers import parity_by_uniform_attention as parity_by_uniform_attention
from sandlab.circuits.distillation.parity_transformers import selection_threshold as selection_threshold
from sandlab.circuits.drawing import draw_attention_flow as draw_attention_flow
from sandlab.circuits.drawing import draw_channels as draw_channels
from sandlab.circuits.drawing import draw_wiring as draw_wiring
from sandlab.circuits.drawing import trace as trace
from sandlab.circuits.dyck.balanced import balanced_dyck as balanced_dyck
from sandlab.circuits.dyck.balanced import random_balanced_scores as random_balanced_scores
from sandlab.circuits.dyck.balanced import stack_like_scores as stack_like_scores
from sandlab.circuits.dyck.balanced import uniform_dyck as uniform_dyck
from sandlab.circuits.dyck.balanced import zero_head as zero_head
from sandlab.circuits.dyck.masks import LayerMasks as LayerMasks
from sandlab.circuits.dyck.masks import apply_masks as apply_masks
from sandlab.circuits.dyck.masks import find_masks as find_masks
from sandlab.circuits.dyck.masks import random_transformer as random_transformer
from sandlab.circuits.dyck.pruning import SharedMatrix as SharedMatrix
from sandlab.circuits.dyck.pruning import TheoryLayerWeights as TheoryLayerWeights
from sandlab.circuits.dyck.pruning import layer_output as layer_output
from sandlab.circuits.dyck.pruning import prune_bilinear as prune_bilinear
from sandlab.circuits.dyck.pruning import prune_identity as prune_identity
from sandlab.circuits.dyck.pruning import prune_layer as prune_layer
from sandlab.circuits.dyck.pruning import prune_linear as prune_linear
from sandlab.circuits.dyck.pruning import prune_mlp as prune_mlp
from sandlab.circuits.dyck.pruning import prune_transformer as prune_transformer
from sandlab.circuits.dyck.pruning import prune_value as prune_value
from sandlab.circuits.dyck.pruning import random_layer as random_layer
from sandlab.circuits.dyck.pruning import shared_matrix as shared_matrix
from sandlab.circuits.dyck.pruning import subset_sum as subset_sum
from sandlab.circuits.expressivity.crasp import CRasp as CRasp
from sandlab.circuits.expressivity.crasp import all_words as all_words
from sandlab.circuits.expressivity.crasp import first_difference as first_difference
from sandlab.circuits.expressivity.crasp_compiler import compile_crasp as compile_crasp
from sandlab.circuits.expressivity.crasp_compiler import run_compiled as run_compiled
from sandlab.circuits.expressivity.crasp_compiler import with_beginning as with_beginning
from sandlab.circuits.expressivity.crasp_programs import CRASP_LANGUAGES as CRASP_LANGUAGES
from sandlab.circuits.expressivity.crasp_programs import Language as Language
from sandlab.circuits.expressivity.crasp_programs import crasp_names as crasp_names
from sandlab.circuits.expressivity.crasp_programs import crasp_program as crasp_program
from sandlab.circuits.expressivity.parity import parity_state_space as parity_state_space
from sandlab.circuits.expressivity.raspl import RaspL as RaspL
from sandlab.circuits.expressivity.raspl_compiler import compile_raspl as compile_raspl
from sandlab.circuits.expressivity.raspl_compiler import run_compiled_raspl as run_compiled_raspl
from sandlab.circuits.expressivity.raspl_examples import RASPL_EXAMPLES as RASPL_EXAMPLES
from sandlab.circuits.expressivity.raspl_examples import raspl_example as raspl_example
from sandlab.circuits.expressivity.raspl_programs import raspl_program as raspl_program
from sandlab.circuits.flip_flop.memory import flip_flop_parser as flip_flop_parser
from sandlab.circuits.flip_flop.memory import flip_flop_transformer as flip_flop_transformer
from sandlab.circuits.flip_flop.memory import memory_transformer as memory_transformer
from sandlab.circuits.flip_flop.memory import parser_machine as parser_machine
from sandlab.circuits.gadgets import Network as Network
from sandlab.circuits.gadgets import chain as chain
from sandlab.circuits.gadgets import compose_functions as compose_functions
from sandlab.circuits.gadgets import hot_index as hot_index
from sandlab.circuits.gadgets import indexing as indexing
from sandlab.circuits.gadgets import interpolate as interpolate
from sandlab.circuits.gadgets import linear_as_relu as linear_as_relu
from sandlab.circuits.gadgets import look_up as look_up
from sandlab.circuits.gadgets import projection_basis as projection_basis
from sandlab.circuits.gadgets import select_network as select_network
from sandlab.circuits.gadgets import softmax_error_bound as softmax_error_bound
from sandlab.circuits.gadgets import step_up as step_up
from sandlab.circuits.gadgets import tabulate as tabulate
from sandlab.circuits.knowledge.outer_product import outer_product_capacity as outer_product_capacity
from sandlab.circuits.knowledge.outer_product import outer_product_memory as outer_product_memory
from sandlab.circuits.markov.causal_graphs import causal_graph_estimator as causal_graph_estimator
from sandlab.circuits.markov.causal_graphs import parent_heads_estimator as parent_heads_estimator
from sandlab.circuits.markov.induction import induction_head as induction_head
from sandlab.circuits.markov.korder import context_gap as context_gap
from sandlab.circuits.markov.korder import korder_three_layers as korder_three_layers
from sandlab.circuits.markov.korder import korder_two_layers as korder_two_layers
from sandlab.circuits.markov.korder import with_start_token as with_start_token
from sandlab.circuits.markov.one_layer import kernel_predictor as kernel_predictor
from sandlab.circuits.markov.one_layer import marginal_predictor as marginal_predictor
from sandlab.circuits.markov.one_layer import three_parameter_transformer as three_parameter_transformer
from sandlab.circuits.markov.pull_back import disentangle as disentangle
from sandlab.circuits.markov.suffix_tables import SuffixTable as SuffixTable
from sandlab.circuits.markov.suffix_tables import SuffixTableConfig as SuffixTableConfig
from sandlab.circuits.markov.suffix_tables import suffix_table as suffix_table
from sandlab.circuits.ngrams.additive import additive_ngram_estimator as additive_ngram_estimator
from sandlab.circuits.ngrams.counting import all_heads_bigram as all_heads_bigram
from sandlab.circuits.ngrams.counting import heads_for_lags as heads_for_lags
from sandlab.circuits.ngrams.counting import lag_set_estimator as lag_set_estimator
from sandlab.circuits.ngrams.counting import ngram_estimator as ngram_estimator
from sandlab.circuits.parallel.product_weights import deterministic_map as deterministic_map
from sandlab.circuits.parallel.product_weights import gibbs_site_step as gibbs_site_step
from sandlab.circuits.parallel.product_weights import nearest_product_chain as nearest_product_chain
from sandlab.circuits.parallel.product_weights import product_chain as product_chain
from sandlab.circuits.precision import PrecisionSweep as PrecisionSweep
from sandlab.circuits.precision import bits_needed as bits_needed
from sandlab.circuits.precision import precision_sweep as precision_sweep
from sandlab.circuits.precision import rounded as rounded
from sandlab.circuits.reasoning.connectivity import repeated_squaring as repeated_squaring
from sandlab.circuits.reasoning.connectivity import squaring_inputs as squaring_inputs
from sandlab.circuits.reasoning.gate_by_gate import gate_by_gate as gate_by_gate
from sandlab.circuits.reasoning.ideal import ValueFeatures as ValueFeatures
from sandlab.circuits.reasoning.ideal import ideal_features as ideal_features
from sandlab.circuits.reasoning.ideal import ideal_lego_transformer as ideal_lego_transformer
from sandlab.circuits.sizes import Complexity as Complexity
from sandlab.circuits.sizes import complexity as complexity
from sandlab.circuits.targets import Frame as Frame
from sandlab.circuits.targets import SimplifiedOptions as SimplifiedOptions
from sandlab.circuits.targets import to_balance as to_balance
from sandlab.circuits.targets import to_simplified as to_simplified
from sandlab.circuits.targets import to_theory as to_theory
from sandlab.circuits.targets import to_transformer as to_transformer
from sandlab.circuits.topics.optima import block_value as block_value
from sandlab.circuits.topics.optima import diagonal_value as diagonal_value
from sandlab.circuits.topics.optima import embedding_optimum as embedding_optimum
from sandlab.circuits.topics.optima import level_attention as level_attention
from sandlab.circuits.topics.optima import ridge_fit as ridge_fit
from sandlab.circuits.topics.optima import ridge_value as ridge_value
from sandlab.circuits.topics.optima import value_family as value_family
from sandlab.circuits.topics.prescribed import embedding_topics as embedding_topics
from sandlab.circuits.topics.prescribed import set_attention as set_attention
from sandlab.circuits.topics.prescribed import set_value as set_value
from sandlab.circuits.topics.prescribed import value_topics as value_topics

__all__ = [
    "AbelianProgram",
    "CRASP_LANGUAGES",
    "CRasp",
    "CircuitBuilder",
    "CircuitLayer",
    "Complexity",
    "DepthReport",
    "DirectProgram",
    "Frame",
    "GroupProgram",
    "Head",
    "Language",
    "LayerMasks",
    "METHODS",
    "MethodReport",
    "Network",
    "PrecisionSweep",
    "RASPL_EXAMPLES",
    "RaspL",
    "SemidirectProgram",
    "SharedMatrix",
    "SimplifiedOptions",
    "SuffixTable",
    "SuffixTableConfig",
    "TheoryLayerWeights",
    "ValueFeatures",
    "WalkTrace",
    "WreathProgram",
    "additive_ngram_estimator",
    "all_heads_bigram",
    "all_words",
    "animate_computation",
    "apply_masks",
    "balanced_dyck",
    "bits_needed",
    "block_value",
    "causal_graph_estimator",
    "chain",
    "compare_methods",
    "compile",
    "compile_crasp",
    "compile_raspl",
    "complexity",
    "compose_functions",
    "context_gap",
    "count_errors_together",
    "counter_circuit",
    "crasp_names",
    "crasp_program",
    "depth_report",
    "deterministic_map",
    "diagonal_value",
    "direct_product_circuit",
    "direct_program",
    "disentangle",
    "draw_attention_flow",
    "draw_channels",
    "draw_computation",
    "draw_wiring",
    "embedding_optimum",
    "embedding_topics",
    "find_masks",
    "first_difference",
    "flip_flop_parser",
    "flip_flop_transformer",
    "gate_by_gate",
    "gibbs_site_step",
    "grid_moves",
    "gridworld_circuit",
    "group_circuit",
    "group_program",
    "heads_for_lags",
    "hot_index",
    "ideal_features",
    "ideal_lego_transformer",
    "indexing",
    "induction_head",
    "interpolate",
    "kernel_predictor",
    "korder_three_layers",
    "korder_two_layers",
    "krohn_rhodes_circuit",
    "lag_set_estimator",
    "layer_output",
    "layers_in_common",
    "letter_group",
    "level_attention",
    "linear_as_relu",
    "look_up",
    "marginal_predictor",
    "memory_circuit",
    "memory_transformer",
    "nearest_product_chain",
    "ngram_estimator",
    "outer_product_capacity",
    "outer_product_memory",
    "parent_heads_estimator",
    "parity_by_selection",
    "parity_by_uniform_attention",
    "parity_state_space",
    "parser_machine",
    "permutation_reset_circuit",
    "precision_sweep",
    "product_chain",
    "projection_basis",
    "prune_bilinear",
    "prune_identity",
    "prune_layer",
    "prune_linear",
    "prune_mlp",
    "prune_transformer",
    "prune_value",
    "random_balanced_scores",
    "random_layer",
    "random_transformer",
    "raspl_example",
    "raspl_program",
    "reading_paths",
    "repeated_squaring",
    "require_solvable",
    "ridge_fit",
    "ridge_value",
    "rnn_circuit",
    "rounded",
    "run_compiled",
    "run_compiled_raspl",
    "running_average",
    "scan_circuit",
    "select_largest",
    "select_network",
    "selection_threshold",
    "semidirect_circuit",
    "semidirect_program",
    "sequential_circuit",
    "series_circuit",
    "series_program",
    "set_attention",
    "set_value",
    "shared_matrix",
    "sine_counter_circuit",
    "softmax_error_bound",
    "squaring_inputs",
    "stack_like_scores",
    "step_up",
    "subset_sum",
    "suffix_table",
    "tabulate",
    "three_parameter_transformer",
    "to_balance",
    "to_simplified",
    "to_theory",
    "to_transformer",
    "trace",
    "truncated_counter",
    "uniform_dyck",
    "value_family",
    "value_topics",
    "verify",
    "walk_by_boundaries",
    "with_beginning",
    "with_start_token",
    "wreath_circuit",
    "wreath_program",
    "zero_head",
]
