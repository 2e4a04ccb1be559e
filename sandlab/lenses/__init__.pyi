# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab.lenses.ablation import accuracy_with_attention as accuracy_with_attention
from sandlab.lenses.ablation import head_importance as head_importance
from sandlab.lenses.ablation import prune_heads as prune_heads
from sandlab.lenses.attention_patterns import attention_maps as attention_maps
from sandlab.lenses.attention_patterns import attention_match as attention_match
from sandlab.lenses.attention_patterns import look_back as look_back
from sandlab.lenses.attention_patterns import parent_pattern as parent_pattern
from sandlab.lenses.attention_patterns import same_token_successor as same_token_successor
from sandlab.lenses.attention_pictures import mark_attention as mark_attention
from sandlab.lenses.automata.boundary_attention import attention_uniformity as attention_uniformity
from sandlab.lenses.automata.boundary_attention import boundary_scores as boundary_scores
from sandlab.lenses.automata.boundary_attention import draw_boundaries as draw_boundaries
from sandlab.lenses.automata.state_tracking import correct_states as correct_states
from sandlab.lenses.automata.state_tracking import count_accuracy as count_accuracy
from sandlab.lenses.automata.state_tracking import majority_accuracy as majority_accuracy
from sandlab.lenses.automata.state_tracking import minimal_depth as minimal_depth
from sandlab.lenses.automata.state_tracking import state_accuracy as state_accuracy
from sandlab.lenses.curvature import Spectrum as Spectrum
from sandlab.lenses.curvature import hessian_matrix as hessian_matrix
from sandlab.lenses.curvature import hessian_product as hessian_product
from sandlab.lenses.curvature import hessian_spectrum as hessian_spectrum
from sandlab.lenses.curvature import lanczos as lanczos
from sandlab.lenses.diffusions.bounds import curvature_bound as curvature_bound
from sandlab.lenses.diffusions.bounds import delta_closeness as delta_closeness
from sandlab.lenses.diffusions.bounds import global_l1_bound as global_l1_bound
from sandlab.lenses.diffusions.bounds import gobet_violations as gobet_violations
from sandlab.lenses.diffusions.bounds import local_kl_bound as local_kl_bound
from sandlab.lenses.diffusions.bounds import loss_curvature as loss_curvature
from sandlab.lenses.diffusions.bounds import loss_profile as loss_profile
from sandlab.lenses.diffusions.bounds import mean_true_density as mean_true_density
from sandlab.lenses.diffusions.bounds import random_perturbation as random_perturbation
from sandlab.lenses.diffusions.bounds import second_factor_finite as second_factor_finite
from sandlab.lenses.diffusions.kernels import contrast_constant as contrast_constant
from sandlab.lenses.diffusions.kernels import euler_kl as euler_kl
from sandlab.lenses.diffusions.kernels import excess_risk as excess_risk
from sandlab.lenses.diffusions.kernels import kernel_metrics as kernel_metrics
from sandlab.lenses.diffusions.kernels import optimal_risk as optimal_risk
from sandlab.lenses.diffusions.kernels import ou_kl as ou_kl
from sandlab.lenses.diffusions.kernels import ou_optimal_risk as ou_optimal_risk
from sandlab.lenses.diffusions.kernels import sampled_kl as sampled_kl
from sandlab.lenses.diffusions.mixing import beta_mixing as beta_mixing
from sandlab.lenses.diffusions.mixing import blocking_bound as blocking_bound
from sandlab.lenses.diffusions.mixing import generalization_gap as generalization_gap
from sandlab.lenses.diffusions.mixing import massart_cap as massart_cap
from sandlab.lenses.diffusions.mixing import mean_norm_bound as mean_norm_bound
from sandlab.lenses.diffusions.mixing import ou_mean_norm as ou_mean_norm
from sandlab.lenses.diffusions.mixing import pair_mixing as pair_mixing
from sandlab.lenses.diffusions.mixing import pointwise_mixing as pointwise_mixing
from sandlab.lenses.diffusions.mixing import rademacher as rademacher
from sandlab.lenses.distances import distance_by_position as distance_by_position
from sandlab.lenses.distances import distances_to_estimators as distances_to_estimators
from sandlab.lenses.distances import divergence as divergence
from sandlab.lenses.distances import estimators as estimators
from sandlab.lenses.distillation.attention_paths import PathAttention as PathAttention
from sandlab.lenses.distillation.attention_paths import attention_paths as attention_paths
from sandlab.lenses.distillation.films import UncertaintyFilm as UncertaintyFilm
from sandlab.lenses.distillation.monomials import MonomialReport as MonomialReport
from sandlab.lenses.distillation.monomials import monomial_correlations as monomial_correlations
from sandlab.lenses.distillation.monomials import monomial_sets as monomial_sets
from sandlab.lenses.distillation.monomials import support_report as support_report
from sandlab.lenses.distillation.ngram_dependence import NgramDependence as NgramDependence
from sandlab.lenses.distillation.ngram_dependence import closeness as closeness
from sandlab.lenses.distillation.ngram_dependence import model_probs as model_probs
from sandlab.lenses.distillation.ngram_dependence import neighbourhood as neighbourhood
from sandlab.lenses.distillation.ngram_dependence import robustness as robustness
from sandlab.lenses.distillation.nonterminals import NonterminalProbe as NonterminalProbe
from sandlab.lenses.distillation.nonterminals import PositionProbe as PositionProbe
from sandlab.lenses.distillation.nonterminals import nonterminal_probe as nonterminal_probe
from sandlab.lenses.distillation.one_step import characters as characters
from sandlab.lenses.distillation.one_step import first_step_weights as first_step_weights
from sandlab.lenses.distillation.one_step import majority_gap as majority_gap
from sandlab.lenses.distillation.one_step import network_correlation as network_correlation
from sandlab.lenses.distillation.one_step import oneshot_samples as oneshot_samples
from sandlab.lenses.distillation.one_step import pair_correlation as pair_correlation
from sandlab.lenses.distillation.one_step import parity_gradient as parity_gradient
from sandlab.lenses.distillation.one_step import progressive_samples as progressive_samples
from sandlab.lenses.distillation.one_step import query_lower_bound as query_lower_bound
from sandlab.lenses.distillation.one_step import teacher_samples as teacher_samples
from sandlab.lenses.distillation.sample_bounds import corollary_samples as corollary_samples
from sandlab.lenses.distillation.sample_bounds import informal_samples as informal_samples
from sandlab.lenses.distillation.sample_bounds import sample_bounds as sample_bounds
from sandlab.lenses.dyck.balance import BalanceReport as BalanceReport
from sandlab.lenses.dyck.balance import balance_gap as balance_gap
from sandlab.lenses.dyck.balance import balance_report as balance_report
from sandlab.lenses.dyck.balance import balance_violation as balance_violation
from sandlab.lenses.dyck.balance import contribution as contribution
from sandlab.lenses.dyck.balance import pair_frequencies as pair_frequencies
from sandlab.lenses.dyck.balance import seen_drift as seen_drift
from sandlab.lenses.dyck.balance_bounds import Twins as Twins
from sandlab.lenses.dyck.balance_bounds import cancelling_residue as cancelling_residue
from sandlab.lenses.dyck.balance_bounds import network_lipschitz as network_lipschitz
from sandlab.lenses.dyck.balance_bounds import pumped_twins as pumped_twins
from sandlab.lenses.dyck.balance_bounds import violation_bound as violation_bound
from sandlab.lenses.dyck.bracket_attention import attention_variation as attention_variation
from sandlab.lenses.dyck.bracket_attention import bracket_preference as bracket_preference
from sandlab.lenses.dyck.bracket_attention import closing_accuracy as closing_accuracy
from sandlab.lenses.dyck.bracket_attention import random_attention_variation as random_attention_variation
from sandlab.lenses.dyck.bracket_attention import random_causal_attention as random_causal_attention
from sandlab.lenses.dyck.bracket_attention import stack_likeness as stack_likeness
from sandlab.lenses.dyck.bracket_attention import variation_per_run as variation_per_run
from sandlab.lenses.dyck.lipschitz import attention_lipschitz as attention_lipschitz
from sandlab.lenses.dyck.lipschitz import column_norm as column_norm
from sandlab.lenses.dyck.lipschitz import composition_error as composition_error
from sandlab.lenses.dyck.lipschitz import floor_norm as floor_norm
from sandlab.lenses.dyck.lipschitz import layer_norm_lipschitz as layer_norm_lipschitz
from sandlab.lenses.dyck.lipschitz import overwhelming_norm as overwhelming_norm
from sandlab.lenses.dyck.lipschitz import softmax_change as softmax_change
from sandlab.lenses.dyck.pumping import least_confusion as least_confusion
from sandlab.lenses.dyck.pumping import pumped_attention as pumped_attention
from sandlab.lenses.dyck.pumping import pumped_memory as pumped_memory
from sandlab.lenses.expressivity.circuit_classes import Rung as Rung
from sandlab.lenses.expressivity.circuit_classes import check_rung as check_rung
from sandlab.lenses.expressivity.circuit_classes import circuit_class_table as circuit_class_table
from sandlab.lenses.expressivity.exact_match import MatchBySize as MatchBySize
from sandlab.lenses.expressivity.exact_match import PartAccuracy as PartAccuracy
from sandlab.lenses.expressivity.exact_match import exact_match as exact_match
from sandlab.lenses.expressivity.exact_match import only_part as only_part
from sandlab.lenses.expressivity.lower_bounds import CommunicationBounds as CommunicationBounds
from sandlab.lenses.expressivity.lower_bounds import bounds_of as bounds_of
from sandlab.lenses.expressivity.lower_bounds import communication_table as communication_table
from sandlab.lenses.expressivity.lower_bounds import model_sizes as model_sizes
from sandlab.lenses.expressivity.protocols import AttentionMessage as AttentionMessage
from sandlab.lenses.expressivity.protocols import attention_message as attention_message
from sandlab.lenses.expressivity.protocols import attention_protocol as attention_protocol
from sandlab.lenses.expressivity.protocols import protocol_accuracy as protocol_accuracy
from sandlab.lenses.expressivity.protocols import quantise as quantise
from sandlab.lenses.expressivity.protocols import recurrent_protocol as recurrent_protocol
from sandlab.lenses.expressivity.protocols import recurrent_state_size as recurrent_state_size
from sandlab.lenses.flip_flop.attention_limits import LinearPositionHead as LinearPositionHead
from sandlab.lenses.flip_flop.attention_limits import dilution_bound as dilution_bound
from sandlab.lenses.flip_flop.attention_limits import dilution_excess as dilution_excess
from sandlab.lenses.flip_flop.attention_limits import failure_gap as failure_gap
from sandlab.lenses.flip_flop.attention_limits import largest_attention as largest_attention
from sandlab.lenses.flip_flop.exact_machines import sharpness_gap as sharpness_gap
from sandlab.lenses.flip_flop.exact_machines import small_monoids as small_monoids
from sandlab.lenses.flip_flop.exact_machines import window_error as window_error
from sandlab.lenses.flip_flop.exact_machines import window_gap as window_gap
from sandlab.lenses.flip_flop.exact_machines import wrong_memories as wrong_memories
from sandlab.lenses.flip_flop.exact_machines import wrong_on_short_strings as wrong_on_short_strings
from sandlab.lenses.flip_flop.exact_machines import wrong_parses as wrong_parses
from sandlab.lenses.flip_flop.exact_machines import wrong_sums as wrong_sums
from sandlab.lenses.flip_flop.glitches import Glitch as Glitch
from sandlab.lenses.flip_flop.glitches import draw_glitch as draw_glitch
from sandlab.lenses.flip_flop.glitches import draw_glitch_maps as draw_glitch_maps
from sandlab.lenses.flip_flop.glitches import find_glitch as find_glitch
from sandlab.lenses.flip_flop.glitches import shorten as shorten
from sandlab.lenses.flip_flop.hugging_face_reader import HuggingFaceReader as HuggingFaceReader
from sandlab.lenses.flip_flop.light_switch import Reader as Reader
from sandlab.lenses.flip_flop.light_switch import WordReader as WordReader
from sandlab.lenses.flip_flop.light_switch import light_switch_accuracy as light_switch_accuracy
from sandlab.lenses.flip_flop.memory_heads import attention_entropy as attention_entropy
from sandlab.lenses.flip_flop.memory_heads import head_differences as head_differences
from sandlab.lenses.flip_flop.memory_heads import ideal_memory_score as ideal_memory_score
from sandlab.lenses.flip_flop.memory_heads import misleading_rows as misleading_rows
from sandlab.lenses.flip_flop.memory_heads import value_norm_importance as value_norm_importance
from sandlab.lenses.flip_flop.ngrams import ngram_predictor as ngram_predictor
from sandlab.lenses.flip_flop.pictures import draw_dilution as draw_dilution
from sandlab.lenses.flip_flop.pictures import draw_drift as draw_drift
from sandlab.lenses.flip_flop.pictures import draw_error_curve as draw_error_curve
from sandlab.lenses.flip_flop.pictures import draw_error_ranges as draw_error_ranges
from sandlab.lenses.flip_flop.pictures import draw_error_scatter as draw_error_scatter
from sandlab.lenses.flip_flop.pictures import draw_failure_lengths as draw_failure_lengths
from sandlab.lenses.flip_flop.pictures import draw_operations as draw_operations
from sandlab.lenses.flip_flop.pictures import draw_training_errors as draw_training_errors
from sandlab.lenses.flip_flop.pictures import draw_window_errors as draw_window_errors
from sandlab.lenses.flip_flop.probes import AttentionDrift as AttentionDrift
from sandlab.lenses.flip_flop.probes import DistanceErrors as DistanceErrors
from sandlab.lenses.flip_flop.probes import Failure as Failure
from sandlab.lenses.flip_flop.probes import HeadDistances as HeadDistances
from sandlab.lenses.flip_flop.probes import HeadReport as HeadReport
from sandlab.lenses.flip_flop.probes import LabelErrors as LabelErrors
from sandlab.lenses.flip_flop.probes import ReadErrors as ReadErrors
from sandlab.lenses.flip_flop.probes import ShortestFailures as ShortestFailures
from sandlab.lenses.flip_flop.probes import StoryAccuracy as StoryAccuracy
from sandlab.lenses.flip_flop.probes import distance_edges as distance_edges
from sandlab.lenses.flip_flop.probes import excess_loss as excess_loss
from sandlab.lenses.flip_flop.probes import misleading_maxima as misleading_maxima
from sandlab.lenses.flip_flop.probes import read_sets as read_sets
from sandlab.lenses.flip_flop.probes import story_accuracy as story_accuracy
from sandlab.lenses.flip_flop.probes import weight_norm as weight_norm
from sandlab.lenses.flip_flop.tail_errors import ErrorCurve as ErrorCurve
from sandlab.lenses.flip_flop.tail_errors import ErrorRate as ErrorRate
from sandlab.lenses.flip_flop.tail_errors import best_so_far as best_so_far
from sandlab.lenses.flip_flop.tail_errors import error_curve as error_curve
from sandlab.lenses.flip_flop.tail_errors import errors_by as errors_by
from sandlab.lenses.flip_flop.tail_errors import exact_interval as exact_interval
from sandlab.lenses.flip_flop.tail_errors import tail_error as tail_error
from sandlab.lenses.flip_flop.tail_errors import wrong_targets as wrong_targets
from sandlab.lenses.gradients import gradient_norms as gradient_norms
from sandlab.lenses.head_gates import GatedHeads as GatedHeads
from sandlab.lenses.head_gates import gate_heads as gate_heads
from sandlab.lenses.head_matching import HeadMatch as HeadMatch
from sandlab.lenses.head_matching import attention_on_parents as attention_on_parents
from sandlab.lenses.head_matching import match_heads as match_heads
from sandlab.lenses.hmm.identifiability import Identifiability as Identifiability
from sandlab.lenses.hmm.identifiability import equivalent as equivalent
from sandlab.lenses.hmm.identifiability import identifiable as identifiable
from sandlab.lenses.hmm.identifiability import jacobian_nullity as jacobian_nullity
from sandlab.lenses.hmm.identifiability import predictor_difference as predictor_difference
from sandlab.lenses.hmm.identifiability import same_predictor as same_predictor
from sandlab.lenses.hmm.orbit_film import OrbitFilm as OrbitFilm
from sandlab.lenses.hmm.posteriors import posterior_jacobian as posterior_jacobian
from sandlab.lenses.hmm.posteriors import posterior_saturation as posterior_saturation
from sandlab.lenses.knowledge.stages import HallucinationStage as HallucinationStage
from sandlab.lenses.knowledge.stages import fact_losses as fact_losses
from sandlab.lenses.knowledge.stages import fact_probe as fact_probe
from sandlab.lenses.knowledge.stages import hallucination_stage as hallucination_stage
from sandlab.lenses.landscapes import Landscape as Landscape
from sandlab.lenses.landscapes import filter_normalised as filter_normalised
from sandlab.lenses.landscapes import loss_along_line as loss_along_line
from sandlab.lenses.landscapes import loss_over_plane as loss_over_plane
from sandlab.lenses.markov.attention import StartToken as StartToken
from sandlab.lenses.markov.attention import TreeAttention as TreeAttention
from sandlab.lenses.markov.attention import attention_on_start as attention_on_start
from sandlab.lenses.markov.attention import induction_match as induction_match
from sandlab.lenses.markov.attention import sharpened_attention as sharpened_attention
from sandlab.lenses.markov.attention import tree_attention as tree_attention
from sandlab.lenses.markov.chains import chain_predictions as chain_predictions
from sandlab.lenses.markov.chains import enumerated_chain_loss as enumerated_chain_loss
from sandlab.lenses.markov.chains import lag_found as lag_found
from sandlab.lenses.markov.chains import prior_errors as prior_errors
from sandlab.lenses.markov.dependence import chain_chi_square as chain_chi_square
from sandlab.lenses.markov.dependence import chi_square as chi_square
from sandlab.lenses.markov.dependence import points_at_parent as points_at_parent
from sandlab.lenses.markov.dependence import tree_chi_square as tree_chi_square
from sandlab.lenses.markov.exactness import distance_from_counts as distance_from_counts
from sandlab.lenses.markov.exactness import induction_circuit_error as induction_circuit_error
from sandlab.lenses.markov.exactness import information_increase as information_increase
from sandlab.lenses.markov.exactness import korder_circuit_error as korder_circuit_error
from sandlab.lenses.markov.exactness import parents_circuit_error as parents_circuit_error
from sandlab.lenses.markov.exactness import pull_back_error as pull_back_error
from sandlab.lenses.markov.exactness import recovered_edges as recovered_edges
from sandlab.lenses.markov.exactness import row_entropy_errors as row_entropy_errors
from sandlab.lenses.markov.exactness import sharpness_error as sharpness_error
from sandlab.lenses.markov.exactness import tree_circuit_error as tree_circuit_error
from sandlab.lenses.markov.exactness import two_state_error as two_state_error
from sandlab.lenses.markov.marginal_hessian import MarginalCurvature as MarginalCurvature
from sandlab.lenses.markov.marginal_hessian import MarginalPoint as MarginalPoint
from sandlab.lenses.markov.marginal_hessian import marginal_curvature as marginal_curvature
from sandlab.lenses.nce.annulus import SteepestPoint as SteepestPoint
from sandlab.lenses.nce.annulus import TailTerms as TailTerms
from sandlab.lenses.nce.annulus import annulus_points as annulus_points
from sandlab.lenses.nce.annulus import decay_exponent as decay_exponent
from sandlab.lenses.nce.annulus import in_annulus as in_annulus
from sandlab.lenses.nce.annulus import in_region as in_region
from sandlab.lenses.nce.annulus import mean_distance as mean_distance
from sandlab.lenses.nce.annulus import radial_gradient as radial_gradient
from sandlab.lenses.nce.annulus import steepest_point as steepest_point
from sandlab.lenses.nce.annulus import tail_terms as tail_terms
from sandlab.lenses.nce.bounds import NormalisedBound as NormalisedBound
from sandlab.lenses.nce.bounds import bound_ratios as bound_ratios
from sandlab.lenses.nce.bounds import gd_step_lower_bound as gd_step_lower_bound
from sandlab.lenses.nce.bounds import newton_step_lower_bound as newton_step_lower_bound
from sandlab.lenses.nce.bounds import ngd_step_upper_bound as ngd_step_upper_bound
from sandlab.lenses.nce.constants import CurvatureRange as CurvatureRange
from sandlab.lenses.nce.constants import FisherConstants as FisherConstants
from sandlab.lenses.nce.constants import HessianNeighbourhood as HessianNeighbourhood
from sandlab.lenses.nce.constants import bhattacharyya as bhattacharyya
from sandlab.lenses.nce.constants import condition_number as condition_number
from sandlab.lenses.nce.constants import curvature_range as curvature_range
from sandlab.lenses.nce.constants import fisher_constants as fisher_constants
from sandlab.lenses.nce.constants import hessian_neighbourhood as hessian_neighbourhood
from sandlab.lenses.nce.constants import nce_spectrum as nce_spectrum
from sandlab.lenses.nce.efficiency import asymptotic_error as asymptotic_error
from sandlab.lenses.nce.parameter_sets import fisher_constants_over as fisher_constants_over
from sandlab.lenses.nce.pictures import NCELandscape as NCELandscape
from sandlab.lenses.nce.pictures import animate_path as animate_path
from sandlab.lenses.nce.pictures import draw_annulus as draw_annulus
from sandlab.lenses.nce.pictures import draw_chasm as draw_chasm
from sandlab.lenses.nce.pictures import draw_landscape as draw_landscape
from sandlab.lenses.nce.pictures import draw_surface as draw_surface
from sandlab.lenses.nce.pictures import nce_landscape as nce_landscape
from sandlab.lenses.ngrams.jacobians import attention_jacobian_error as attention_jacobian_error
from sandlab.lenses.ngrams.jacobians import attention_jacobians as attention_jacobians
from sandlab.lenses.ngrams.jacobians import simplified_jacobian_error as simplified_jacobian_error
from sandlab.lenses.ngrams.jacobians import simplified_jacobians as simplified_jacobians
from sandlab.lenses.ngrams.lemmas import count_errors as count_errors
from sandlab.lenses.ngrams.lemmas import counting_error as counting_error
from sandlab.lenses.ngrams.lemmas import key_gradient_errors as key_gradient_errors
from sandlab.lenses.ngrams.lemmas import look_back_error as look_back_error
from sandlab.lenses.ngrams.lemmas import matching_excess as matching_excess
from sandlab.lenses.ngrams.lemmas import score_form_error as score_form_error
from sandlab.lenses.ngrams.pictures import AttentionSnapshots as AttentionSnapshots
from sandlab.lenses.ngrams.pictures import draw_stages as draw_stages
from sandlab.lenses.ngrams.probes import LagMass as LagMass
from sandlab.lenses.ngrams.probes import PopulationGradient as PopulationGradient
from sandlab.lenses.ngrams.probes import first_layer_maps as first_layer_maps
from sandlab.lenses.ngrams.probes import nearest_estimator as nearest_estimator
from sandlab.lenses.ngrams.stages import NearestEstimator as NearestEstimator
from sandlab.lenses.ngrams.stages import Plateau as Plateau
from sandlab.lenses.ngrams.stages import Stages as Stages
from sandlab.lenses.ngrams.stages import half_way as half_way
from sandlab.lenses.ngrams.stages import head_lag_mass as head_lag_mass
from sandlab.lenses.ngrams.stages import name_plateaus as name_plateaus
from sandlab.lenses.ngrams.stages import named_stages as named_stages
from sandlab.lenses.ngrams.stages import nearest_lag_set as nearest_lag_set
from sandlab.lenses.ngrams.stages import plateau_levels as plateau_levels
from sandlab.lenses.ngrams.stages import plateaus as plateaus
from sandlab.lenses.ngrams.stages import steepest_drop as steepest_drop
from sandlab.lenses.ngrams.theory import GradientEstimate as GradientEstimate
from sandlab.lenses.ngrams.theory import KeyGradient as KeyGradient
from sandlab.lenses.ngrams.theory import Stationarity as Stationarity
from sandlab.lenses.ngrams.theory import covered as covered
from sandlab.lenses.ngrams.theory import enumerate_world as enumerate_world
from sandlab.lenses.ngrams.theory import exact_gradient as exact_gradient
from sandlab.lenses.ngrams.theory import exact_gradient_norm as exact_gradient_norm
from sandlab.lenses.ngrams.theory import first_layer_weights as first_layer_weights
from sandlab.lenses.ngrams.theory import key_gradient as key_gradient
from sandlab.lenses.ngrams.theory import monte_carlo_gradient as monte_carlo_gradient
from sandlab.lenses.ngrams.theory import population_gradient as population_gradient
from sandlab.lenses.ngrams.theory import random_like as random_like
from sandlab.lenses.ngrams.theory import score_gradient as score_gradient
from sandlab.lenses.ngrams.theory import second_layer_bounds as second_layer_bounds
from sandlab.lenses.ngrams.theory import stationarity_condition as stationarity_condition
from sandlab.lenses.parallel.bleu_score import bleu as bleu
from sandlab.lenses.parallel.bleu_score import tokenise as tokenise
from sandlab.lenses.parallel.dependence import ConditionalReport as ConditionalReport
from sandlab.lenses.parallel.dependence import conditional_consistency as conditional_consistency
from sandlab.lenses.parallel.dependence import dependency_gap as dependency_gap
from sandlab.lenses.parallel.dependence import gibbs_of_conditionals as gibbs_of_conditionals
from sandlab.lenses.parallel.dependence import site_table as site_table
from sandlab.lenses.parallel.dependence import total_correlation as total_correlation
from sandlab.lenses.parallel.mixing import chain_spectrum as chain_spectrum
from sandlab.lenses.parallel.mixing import dirichlet_form as dirichlet_form
from sandlab.lenses.parallel.mixing import log_sobolev_constant as log_sobolev_constant
from sandlab.lenses.parallel.mixing import poincare_constant as poincare_constant
from sandlab.lenses.parallel.mixing import tensorisation_constant as tensorisation_constant
from sandlab.lenses.parallel.mixing import variance_gap as variance_gap
from sandlab.lenses.parallel.stuttering import StutterRate as StutterRate
from sandlab.lenses.parallel.stuttering import attention_dependence as attention_dependence
from sandlab.lenses.parallel.stuttering import decoder_patterns as decoder_patterns
from sandlab.lenses.parallel.stuttering import stutter_rate as stutter_rate
from sandlab.lenses.predictions import Loss as Loss
from sandlab.lenses.predictions import evaluating as evaluating
from sandlab.lenses.predictions import log_predictions as log_predictions
from sandlab.lenses.predictions import mean_loss as mean_loss
from sandlab.lenses.predictions import named_weights as named_weights
from sandlab.lenses.probes import FittedProbe as FittedProbe
from sandlab.lenses.probes import linear_probe as linear_probe
from sandlab.lenses.probes import probe_activation as probe_activation
from sandlab.lenses.reasoning.answers import AnswerAccuracy as AnswerAccuracy
from sandlab.lenses.reasoning.answers import LengthAccuracy as LengthAccuracy
from sandlab.lenses.reasoning.answers import SharpAccuracy as SharpAccuracy
from sandlab.lenses.reasoning.answers import answer_accuracy as answer_accuracy
from sandlab.lenses.reasoning.answers import last_answer_accuracy as last_answer_accuracy
from sandlab.lenses.reasoning.answers import right_values as right_values
from sandlab.lenses.reasoning.concentration import AnswerAttention as AnswerAttention
from sandlab.lenses.reasoning.concentration import ContextRot as ContextRot
from sandlab.lenses.reasoning.concentration import Diagonals as Diagonals
from sandlab.lenses.reasoning.concentration import PermutationCheck as PermutationCheck
from sandlab.lenses.reasoning.concentration import PlainMaps as PlainMaps
from sandlab.lenses.reasoning.concentration import answer_patterns as answer_patterns
from sandlab.lenses.reasoning.concentration import attention_concentration as attention_concentration
from sandlab.lenses.reasoning.concentration import measure_attention as measure_attention
from sandlab.lenses.reasoning.events import CollisionRates as CollisionRates
from sandlab.lenses.reasoning.events import collision_rates as collision_rates
from sandlab.lenses.reasoning.events import confusion_events as confusion_events
from sandlab.lenses.reasoning.events import counted_confusions as counted_confusions
from sandlab.lenses.reasoning.features import FeatureReport as FeatureReport
from sandlab.lenses.reasoning.features import PhaseTimes as PhaseTimes
from sandlab.lenses.reasoning.features import RetrievalReport as RetrievalReport
from sandlab.lenses.reasoning.features import curriculum_order as curriculum_order
from sandlab.lenses.reasoning.features import feature_magnitudes as feature_magnitudes
from sandlab.lenses.reasoning.features import feature_report as feature_report
from sandlab.lenses.reasoning.features import feature_shape as feature_shape
from sandlab.lenses.reasoning.features import initial_statistics as initial_statistics
from sandlab.lenses.reasoning.features import order_agreement as order_agreement
from sandlab.lenses.reasoning.features import phase_times as phase_times
from sandlab.lenses.reasoning.features import retrieval_growth as retrieval_growth
from sandlab.lenses.reasoning.features import shape_tolerances as shape_tolerances
from sandlab.lenses.reasoning.horizon import chain_logits as chain_logits
from sandlab.lenses.reasoning.horizon import dilution_bounds as dilution_bounds
from sandlab.lenses.reasoning.horizon import length_horizon as length_horizon
from sandlab.lenses.reasoning.horizon import measured_horizon as measured_horizon
from sandlab.lenses.reasoning.horizon import solved_chains as solved_chains
from sandlab.lenses.reasoning.pictures import draw_action as draw_action
from sandlab.lenses.reasoning.pictures import draw_chain as draw_chain
from sandlab.lenses.reasoning.pictures import draw_step as draw_step
from sandlab.lenses.reasoning.routing import RoutingBlocks as RoutingBlocks
from sandlab.lenses.reasoning.routing import block_norms as block_norms
from sandlab.lenses.reasoning.routing import q_diagonal as q_diagonal
from sandlab.lenses.reasoning.routing import routing_blocks as routing_blocks
from sandlab.lenses.reasoning.tensor_power import PowerBounds as PowerBounds
from sandlab.lenses.reasoning.tensor_power import noisy_power_growth as noisy_power_growth
from sandlab.lenses.reasoning.tensor_power import power_bounds as power_bounds
from sandlab.lenses.reasoning.tensor_power import power_growth as power_growth
from sandlab.lenses.reasoning.tensor_power import winner_takes_all as winner_takes_all
from sandlab.lenses.reasoning.value_oracle import attention_gradient as attention_gradient
from sandlab.lenses.reasoning.value_oracle import ffn_gradient as ffn_gradient
from sandlab.lenses.reasoning.value_oracle import lambda_oracle as lambda_oracle
from sandlab.lenses.reasoning.value_oracle import logit_floor as logit_floor
from sandlab.lenses.spectra import SpectraOverTraining as SpectraOverTraining
from sandlab.lenses.spectra import effective_rank as effective_rank
from sandlab.lenses.spectra import singular_values as singular_values
from sandlab.lenses.spectra import stable_rank as stable_rank
from sandlab.lenses.spectra import top_share as top_share
from sandlab.lenses.token_accuracy import accuracy as accuracy
from sandlab.lenses.token_accuracy import accuracy_on as accuracy_on
from sandlab.lenses.token_accuracy import agreement as agreement
from sandlab.lenses.topics.attention import TopicAttention as TopicAttention
from sandlab.lenses.topics.attention import attention_by_topic as attention_by_topic
from sandlab.lenses.topics.attention import word_counts as word_counts
from sandlab.lenses.topics.document_pictures import document_attention as document_attention
from sandlab.lenses.topics.document_pictures import draw_document_attention as draw_document_attention
from sandlab.lenses.topics.document_pictures import topics_per_document as topics_per_document
from sandlab.lenses.topics.dynamics import StageTimes as StageTimes
from sandlab.lenses.topics.dynamics import ValueRotation as ValueRotation
from sandlab.lenses.topics.dynamics import attention_norms as attention_norms
from sandlab.lenses.topics.dynamics import rotation as rotation
from sandlab.lenses.topics.dynamics import stage_gradient_norms as stage_gradient_norms
from sandlab.lenses.topics.dynamics import stage_times as stage_times
from sandlab.lenses.topics.gram import embedding_residuals as embedding_residuals
from sandlab.lenses.topics.lda import cooccurrence_pairs as cooccurrence_pairs
from sandlab.lenses.topics.lda import fit_lda as fit_lda
from sandlab.lenses.topics.lda import topic_purity as topic_purity
from sandlab.lenses.topics.lda import topic_sets as topic_sets
from sandlab.lenses.topics.lda import topic_words as topic_words
from sandlab.lenses.topics.matrices import BlockContrast as BlockContrast
from sandlab.lenses.topics.matrices import block_contrast as block_contrast
from sandlab.lenses.topics.matrices import block_sums as block_sums
from sandlab.lenses.topics.matrices import optimality_residuals as optimality_residuals
from sandlab.lenses.topics.pictures import draw_topic_matrix as draw_topic_matrix
from sandlab.lenses.topics.pictures import value_film as value_film
from sandlab.lenses.topics.report import PairKinds as PairKinds
from sandlab.lenses.topics.report import TextEncoder as TextEncoder
from sandlab.lenses.topics.report import TopicReport as TopicReport
from sandlab.lenses.topics.report import cosines as cosines
from sandlab.lenses.topics.report import listed_pairs as listed_pairs
from sandlab.lenses.topics.report import pair_attention as pair_attention
from sandlab.lenses.topics.report import pair_reports as pair_reports
from sandlab.lenses.topics.report import topic_pairs as topic_pairs
from sandlab.lenses.topics.report import topic_report as topic_report
from sandlab.lenses.topics.stage_two import StageTwoBounds as StageTwoBounds
from sandlab.lenses.topics.stage_two import asymptotic_block_loss as asymptotic_block_loss
from sandlab.lenses.topics.stage_two import asymptotic_diagonal_loss as asymptotic_diagonal_loss
from sandlab.lenses.topics.stage_two import block_level as block_level
from sandlab.lenses.topics.stage_two import loss_floors as loss_floors
from sandlab.lenses.topics.stage_two import mask_queries as mask_queries
from sandlab.lenses.topics.stage_two import normalisers as normalisers
from sandlab.lenses.topics.stage_two import stage_one_loss as stage_one_loss
from sandlab.lenses.topics.stage_two import stage_two_loss as stage_two_loss

__all__ = [
    "AnswerAccuracy",
    "AnswerAttention",
    "AttentionDrift",
    "AttentionMessage",
    "AttentionSnapshots",
    "BalanceReport",
    "BlockContrast",
    "CollisionRates",
    "CommunicationBounds",
    "ConditionalReport",
    "ContextRot",
    "CurvatureRange",
    "Diagonals",
    "DistanceErrors",
    "ErrorCurve",
    "ErrorRate",
    "Failure",
    "FeatureReport",
    "FisherConstants",
    "FittedProbe",
    "GatedHeads",
    "Glitch",
    "GradientEstimate",
    "HallucinationStage",
    "HeadDistances",
    "HeadMatch",
    "HeadReport",
    "HessianNeighbourhood",
    "HuggingFaceReader",
    "Identifiability",
    "KeyGradient",
    "LabelErrors",
    "LagMass",
    "Landscape",
    "LengthAccuracy",
    "LinearPositionHead",
    "Loss",
    "MarginalCurvature",
    "MarginalPoint",
    "MatchBySize",
    "MonomialReport",
    "NCELandscape",
    "NearestEstimator",
    "NgramDependence",
    "NonterminalProbe",
    "NormalisedBound",
    "OrbitFilm",
    "PairKinds",
    "PartAccuracy",
    "PathAttention",
    "PermutationCheck",
    "PhaseTimes",
    "PlainMaps",
    "Plateau",
    "PopulationGradient",
    "PositionProbe",
    "PowerBounds",
    "ReadErrors",
    "Reader",
    "RetrievalReport",
    "RoutingBlocks",
    "Rung",
    "SharpAccuracy",
    "ShortestFailures",
    "SpectraOverTraining",
    "Spectrum",
    "StageTimes",
    "StageTwoBounds",
    "Stages",
    "StartToken",
    "Stationarity",
    "SteepestPoint",
    "StoryAccuracy",
    "StutterRate",
    "TailTerms",
    "TextEncoder",
    "TopicAttention",
    "TopicReport",
    "TreeAttention",
    "Twins",
    "UncertaintyFilm",
    "ValueRotation",
    "WordReader",
    "accuracy",
    "accuracy_on",
    "accuracy_with_attention",
    "agreement",
    "animate_path",
    "annulus_points",
    "answer_accuracy",
    "answer_patterns",
    "asymptotic_block_loss",
    "asymptotic_diagonal_loss",
    "asymptotic_error",
    "attention_by_topic",
    "attention_concentration",
    "attention_dependence",
    "attention_entropy",
    "attention_gradient",
    "attention_jacobian_error",
    "attention_jacobians",
    "attention_lipschitz",
    "attention_maps",
    "attention_match",
    "attention_message",
    "attention_norms",
    "attention_on_parents",
    "attention_on_start",
    "attention_paths",
    "attention_protocol",
    "attention_uniformity",
    "attention_variation",
    "balance_gap",
    "balance_report",
    "balance_violation",
    "best_so_far",
    "beta_mixing",
    "bhattacharyya",
    "bleu",
    "block_contrast",
    "block_level",
    "block_norms",
    "block_sums",
    "blocking_bound",
    "bound_ratios",
    "boundary_scores",
    "bounds_of",
    "bracket_preference",
    "cancelling_residue",
    "chain_chi_square",
    "chain_logits",
    "chain_predictions",
    "chain_spectrum",
    "characters",
    "check_rung",
    "chi_square",
    "circuit_class_table",
    "closeness",
    "closing_accuracy",
    "collision_rates",
    "column_norm",
    "communication_table",
    "composition_error",
    "condition_number",
    "conditional_consistency",
    "confusion_events",
    "contrast_constant",
    "contribution",
    "cooccurrence_pairs",
    "corollary_samples",
    "correct_states",
    "cosines",
    "count_accuracy",
    "count_errors",
    "counted_confusions",
    "counting_error",
    "covered",
    "curriculum_order",
    "curvature_bound",
    "curvature_range",
    "decay_exponent",
    "decoder_patterns",
    "delta_closeness",
    "dependency_gap",
    "dilution_bound",
    "dilution_bounds",
    "dilution_excess",
    "dirichlet_form",
    "distance_by_position",
    "distance_edges",
    "distance_from_counts",
    "distances_to_estimators",
    "divergence",
    "document_attention",
    "draw_action",
    "draw_annulus",
    "draw_boundaries",
    "draw_chain",
    "draw_chasm",
    "draw_dilution",
    "draw_document_attention",
    "draw_drift",
    "draw_error_curve",
    "draw_error_ranges",
    "draw_error_scatter",
    "draw_failure_lengths",
    "draw_glitch",
    "draw_glitch_maps",
    "draw_landscape",
    "draw_operations",
    "draw_stages",
    "draw_step",
    "draw_surface",
    "draw_topic_matrix",
    "draw_training_errors",
    "draw_window_errors",
    "effective_rank",
    "embedding_residuals",
    "enumerate_world",
    "enumerated_chain_loss",
    "equivalent",
    "error_curve",
    "errors_by",
    "estimators",
    "euler_kl",
    "evaluating",
    "exact_gradient",
    "exact_gradient_norm",
    "exact_interval",
    "exact_match",
    "excess_loss",
    "excess_risk",
    "fact_losses",
    "fact_probe",
    "failure_gap",
    "feature_magnitudes",
    "feature_report",
    "feature_shape",
    "ffn_gradient",
    "filter_normalised",
    "find_glitch",
    "first_layer_maps",
    "first_layer_weights",
    "first_step_weights",
    "fisher_constants",
    "fisher_constants_over",
    "fit_lda",
    "floor_norm",
    "gate_heads",
    "gd_step_lower_bound",
    "generalization_gap",
    "gibbs_of_conditionals",
    "global_l1_bound",
    "gobet_violations",
    "gradient_norms",
    "half_way",
    "hallucination_stage",
    "head_differences",
    "head_importance",
    "head_lag_mass",
    "hessian_matrix",
    "hessian_neighbourhood",
    "hessian_product",
    "hessian_spectrum",
    "ideal_memory_score",
    "identifiable",
    "in_annulus",
    "in_region",
    "induction_circuit_error",
    "induction_match",
    "informal_samples",
    "information_increase",
    "initial_statistics",
    "jacobian_nullity",
    "kernel_metrics",
    "key_gradient",
    "key_gradient_errors",
    "korder_circuit_error",
    "lag_found",
    "lambda_oracle",
    "lanczos",
    "largest_attention",
    "last_answer_accuracy",
    "layer_norm_lipschitz",
    "least_confusion",
    "length_horizon",
    "light_switch_accuracy",
    "linear_probe",
    "listed_pairs",
    "local_kl_bound",
    "log_predictions",
    "log_sobolev_constant",
    "logit_floor",
    "look_back",
    "look_back_error",
    "loss_along_line",
    "loss_curvature",
    "loss_floors",
    "loss_over_plane",
    "loss_profile",
    "majority_accuracy",
    "majority_gap",
    "marginal_curvature",
    "mark_attention",
    "mask_queries",
    "massart_cap",
    "match_heads",
    "matching_excess",
    "mean_distance",
    "mean_loss",
    "mean_norm_bound",
    "mean_true_density",
    "measure_attention",
    "measured_horizon",
    "minimal_depth",
    "misleading_maxima",
    "misleading_rows",
    "model_probs",
    "model_sizes",
    "monomial_correlations",
    "monomial_sets",
    "monte_carlo_gradient",
    "name_plateaus",
    "named_stages",
    "named_weights",
    "nce_landscape",
    "nce_spectrum",
    "nearest_estimator",
    "nearest_lag_set",
    "neighbourhood",
    "network_correlation",
    "network_lipschitz",
    "newton_step_lower_bound",
    "ngd_step_upper_bound",
    "ngram_predictor",
    "noisy_power_growth",
    "nonterminal_probe",
    "normalisers",
    "oneshot_samples",
    "only_part",
    "optimal_risk",
    "optimality_residuals",
    "order_agreement",
    "ou_kl",
    "ou_mean_norm",
    "ou_optimal_risk",
    "overwhelming_norm",
    "pair_attention",
    "pair_correlation",
    "pair_frequencies",
    "pair_mixing",
    "pair_reports",
    "parent_pattern",
    "parents_circuit_error",
    "parity_gradient",
    "phase_times",
    "plateau_levels",
    "plateaus",
    "poincare_constant",
    "points_at_parent",
    "pointwise_mixing",
    "population_gradient",
    "posterior_jacobian",
    "posterior_saturation",
    "power_bounds",
    "power_growth",
    "predictor_difference",
    "prior_errors",
    "probe_activation",
    "progressive_samples",
    "protocol_accuracy",
    "prune_heads",
    "pull_back_error",
    "pumped_attention",
    "pumped_memory",
    "pumped_twins",
    "q_diagonal",
    "quantise",
    "query_lower_bound",
    "rademacher",
    "radial_gradient",
    "random_attention_variation",
    "random_causal_attention",
    "random_like",
    "random_perturbation",
    "read_sets",
    "recovered_edges",
    "recurrent_protocol",
    "recurrent_state_size",
    "retrieval_growth",
    "right_values",
    "robustness",
    "rotation",
    "routing_blocks",
    "row_entropy_errors",
    "same_predictor",
    "same_token_successor",
    "sample_bounds",
    "sampled_kl",
    "score_form_error",
    "score_gradient",
    "second_factor_finite",
    "second_layer_bounds",
    "seen_drift",
    "shape_tolerances",
    "sharpened_attention",
    "sharpness_error",
    "sharpness_gap",
    "shorten",
    "simplified_jacobian_error",
    "simplified_jacobians",
    "singular_values",
    "site_table",
    "small_monoids",
    "softmax_change",
    "solved_chains",
    "stable_rank",
    "stack_likeness",
    "stage_gradient_norms",
    "stage_one_loss",
    "stage_times",
    "stage_two_loss",
    "state_accuracy",
    "stationarity_condition",
    "steepest_drop",
    "steepest_point",
    "story_accuracy",
    "stutter_rate",
    "support_report",
    "tail_error",
    "tail_terms",
    "teacher_samples",
    "tensorisation_constant",
    "tokenise",
    "top_share",
    "topic_pairs",
    "topic_purity",
    "topic_report",
    "topic_sets",
    "topic_words",
    "topics_per_document",
    "total_correlation",
    "tree_attention",
    "tree_chi_square",
    "tree_circuit_error",
    "two_state_error",
    "value_film",
    "value_norm_importance",
    "variance_gap",
    "variation_per_run",
    "violation_bound",
    "weight_norm",
    "window_error",
    "window_gap",
    "winner_takes_all",
    "word_counts",
    "wrong_memories",
    "wrong_on_short_strings",
    "wrong_parses",
    "wrong_sums",
    "wrong_targets",
]
