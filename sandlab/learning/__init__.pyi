# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab.learning.diffusions.classifiers import EvenLogit as EvenLogit
from sandlab.learning.diffusions.classifiers import KernelEstimate as KernelEstimate
from sandlab.learning.diffusions.classifiers import LogitClassifier as LogitClassifier
from sandlab.learning.diffusions.classifiers import PolynomialLogit as PolynomialLogit
from sandlab.learning.diffusions.classifiers import fit_logit as fit_logit
from sandlab.learning.diffusions.classifiers import fit_table as fit_table
from sandlab.learning.diffusions.classifiers import ou_logit as ou_logit
from sandlab.learning.diffusions.classifiers import read_ou as read_ou
from sandlab.learning.diffusions.networks import ContrastiveSquares as ContrastiveSquares
from sandlab.learning.diffusions.networks import network_logit as network_logit
from sandlab.learning.diffusions.on_device import fit_logit_on as fit_logit_on
from sandlab.learning.distillation.checkpoint_store import CheckpointStore as CheckpointStore
from sandlab.learning.distillation.checkpoint_store import keep_weights as keep_weights
from sandlab.learning.distillation.checkpoint_store import soften as soften
from sandlab.learning.distillation.checkpoint_store import without_weights as without_weights
from sandlab.learning.distillation.lesson_plans import Custom as Custom
from sandlab.learning.distillation.lesson_plans import EqualSplit as EqualSplit
from sandlab.learning.distillation.lesson_plans import KappaSplit as KappaSplit
from sandlab.learning.distillation.lesson_plans import LessonPlan as LessonPlan
from sandlab.learning.distillation.lesson_plans import NT as NT
from sandlab.learning.distillation.lesson_plans import OneShot as OneShot
from sandlab.learning.distillation.lesson_plans import TwoShot as TwoShot
from sandlab.learning.distillation.lessons import HingeMix as HingeMix
from sandlab.learning.distillation.lessons import LabelCache as LabelCache
from sandlab.learning.distillation.lessons import Lesson as Lesson
from sandlab.learning.distillation.lessons import TaughtWorld as TaughtWorld
from sandlab.learning.distillation.lessons import Together as Together
from sandlab.learning.distillation.lessons import distil as distil
from sandlab.learning.distillation.lessons import distillation_loss as distillation_loss
from sandlab.learning.distillation.lessons import learn as learn
from sandlab.learning.distillation.lessons import learn_together as learn_together
from sandlab.learning.distillation.perceptrons import Drill as Drill
from sandlab.learning.distillation.perceptrons import DrillRuns as DrillRuns
from sandlab.learning.distillation.perceptrons import PerceptronStack as PerceptronStack
from sandlab.learning.distillation.perceptrons import drill as drill
from sandlab.learning.distillation.phases import Phases as Phases
from sandlab.learning.distillation.phases import accuracy_phases as accuracy_phases
from sandlab.learning.distillation.phases import equally_spaced as equally_spaced
from sandlab.learning.distillation.phases import loss_phases as loss_phases
from sandlab.learning.distillation.phases import mid_transition as mid_transition
from sandlab.learning.distillation.phases import multiples_of as multiples_of
from sandlab.learning.distillation.phases import peak as peak
from sandlab.learning.distillation.two_stages import TheoryWeights as TheoryWeights
from sandlab.learning.distillation.two_stages import every_sign as every_sign
from sandlab.learning.distillation.two_stages import first_stage as first_stage
from sandlab.learning.distillation.two_stages import majority_coefficient as majority_coefficient
from sandlab.learning.distillation.two_stages import recovers_support as recovers_support
from sandlab.learning.distillation.two_stages import second_stage as second_stage
from sandlab.learning.experiment import Experiment as Experiment
from sandlab.learning.experiment import Probe as Probe
from sandlab.learning.experiment import Runs as Runs
from sandlab.learning.experiment import Snapshot as Snapshot
from sandlab.learning.experiment import Training as Training
from sandlab.learning.history import History as History
from sandlab.learning.hmm.density_recovery import HermiteMoments as HermiteMoments
from sandlab.learning.hmm.density_recovery import exact_moments as exact_moments
from sandlab.learning.hmm.density_recovery import hankel_condition as hankel_condition
from sandlab.learning.hmm.density_recovery import mixture_from_moments as mixture_from_moments
from sandlab.learning.hmm.density_recovery import sampled_moments as sampled_moments
from sandlab.learning.hmm.density_recovery import transitions_from_density as transitions_from_density
from sandlab.learning.hmm.gaussian_recovery import Candidate as Candidate
from sandlab.learning.hmm.gaussian_recovery import candidates_from_columns as candidates_from_columns
from sandlab.learning.hmm.gaussian_recovery import read_ghmm_pairwise as read_ghmm_pairwise
from sandlab.learning.hmm.gaussian_recovery import read_ghmm_two_tokens as read_ghmm_two_tokens
from sandlab.learning.hmm.gaussian_recovery import recover as recover
from sandlab.learning.hmm.gaussian_recovery import saturated_columns as saturated_columns
from sandlab.learning.hmm.networks import conditionals_table as conditionals_table
from sandlab.learning.hmm.networks import joint_head_table as joint_head_table
from sandlab.learning.hmm.networks import network_predictor as network_predictor
from sandlab.learning.hmm.networks import read_network_ghmm as read_network_ghmm
from sandlab.learning.hmm.networks import separate_heads_table as separate_heads_table
from sandlab.learning.hmm.networks import vertex_columns as vertex_columns
from sandlab.learning.hmm.parametric import ParametricFit as ParametricFit
from sandlab.learning.hmm.parametric import fit_parametric as fit_parametric
from sandlab.learning.hmm.parametric import fit_parametric_adam as fit_parametric_adam
from sandlab.learning.hmm.parametric import fit_parametric_stream as fit_parametric_stream
from sandlab.learning.hmm.parametric import posterior_rows as posterior_rows
from sandlab.learning.hmm.parametric import task_tensor as task_tensor
from sandlab.learning.hmm.recovery import ParameterError as ParameterError
from sandlab.learning.hmm.recovery import TWO_TOKEN_TASKS as TWO_TOKEN_TASKS
from sandlab.learning.hmm.recovery import align as align
from sandlab.learning.hmm.recovery import as_valid_hmm as as_valid_hmm
from sandlab.learning.hmm.recovery import parameter_error as parameter_error
from sandlab.learning.hmm.recovery import read_hmm as read_hmm
from sandlab.learning.hmm.recovery import recover_hmm as recover_hmm
from sandlab.learning.hmm.samples import EMResult as EMResult
from sandlab.learning.hmm.samples import conditional_table as conditional_table
from sandlab.learning.hmm.samples import expectation_maximisation as expectation_maximisation
from sandlab.learning.hmm.samples import joint_moment_hmm as joint_moment_hmm
from sandlab.learning.hmm.samples import sampled_predictor as sampled_predictor
from sandlab.learning.hmm.tensors import Factors as Factors
from sandlab.learning.hmm.tensors import jennrich as jennrich
from sandlab.learning.hmm.tensors import kruskal_condition as kruskal_condition
from sandlab.learning.hmm.tensors import kruskal_rank as kruskal_rank
from sandlab.learning.hmm.tensors import polish as polish
from sandlab.learning.knowledge.capacity import MemoryTraining as MemoryTraining
from sandlab.learning.knowledge.capacity import bisect_sizes as bisect_sizes
from sandlab.learning.knowledge.capacity import memory_accuracies as memory_accuracies
from sandlab.learning.knowledge.capacity import memory_capacity as memory_capacity
from sandlab.learning.markov.layerwise import TokenMatching as TokenMatching
from sandlab.learning.markov.layerwise import first_layer_descent as first_layer_descent
from sandlab.learning.markov.layerwise import token_matching_config as token_matching_config
from sandlab.learning.markov.one_layer import Basin as Basin
from sandlab.learning.markov.one_layer import Flow as Flow
from sandlab.learning.markov.one_layer import OneLayerMarkovTheory as OneLayerMarkovTheory
from sandlab.learning.markov.one_layer import SADDLE as SADDLE
from sandlab.learning.markov.one_layer import SADDLE_ENERGY as SADDLE_ENERGY
from sandlab.learning.markov.one_layer import flow_energy as flow_energy
from sandlab.learning.markov.one_layer import flow_gain as flow_gain
from sandlab.learning.nce.descent import DESCENT_METHODS as DESCENT_METHODS
from sandlab.learning.nce.descent import Trajectory as Trajectory
from sandlab.learning.nce.descent import newton_direction as newton_direction
from sandlab.learning.nce.descent import optimise as optimise
from sandlab.learning.nce.descent import steps_to_reach as steps_to_reach
from sandlab.learning.nce.losses import MARGIN_LOSSES as MARGIN_LOSSES
from sandlab.learning.nce.losses import MarginLoss as MarginLoss
from sandlab.learning.nce.losses import Scaled as Scaled
from sandlab.learning.nce.losses import Stabiliser as Stabiliser
from sandlab.learning.nce.losses import log_mean_exp as log_mean_exp
from sandlab.learning.nce.losses import margin_loss as margin_loss
from sandlab.learning.nce.losses import shifted_mean as shifted_mean
from sandlab.learning.nce.networks import ContrastiveLoss as ContrastiveLoss
from sandlab.learning.nce.problem import ClosedFormObjective as ClosedFormObjective
from sandlab.learning.nce.problem import ContrastiveObjective as ContrastiveObjective
from sandlab.learning.nce.problem import NCEProblem as NCEProblem
from sandlab.learning.nce.problem import QuadratureObjective as QuadratureObjective
from sandlab.learning.nce.problem import SampleObjective as SampleObjective
from sandlab.learning.nce.search import RateSearch as RateSearch
from sandlab.learning.nce.search import SELECTION_RULES as SELECTION_RULES
from sandlab.learning.nce.search import search_rate as search_rate
from sandlab.learning.objectives import CrossEntropy as CrossEntropy
from sandlab.learning.objectives import Forward as Forward
from sandlab.learning.objectives import LastLabel as LastLabel
from sandlab.learning.objectives import LossFunction as LossFunction
from sandlab.learning.objectives import MaskedToken as MaskedToken
from sandlab.learning.objectives import MemberBatch as MemberBatch
from sandlab.learning.objectives import NextToken as NextToken
from sandlab.learning.objectives import OBJECTIVES as OBJECTIVES
from sandlab.learning.objectives import Objective as Objective
from sandlab.learning.objectives import PositionLabel as PositionLabel
from sandlab.learning.objectives import SoftTarget as SoftTarget
from sandlab.learning.objectives import SquaredError as SquaredError
from sandlab.learning.objectives import as_objective as as_objective
from sandlab.learning.objectives import masked_mean as masked_mean
from sandlab.learning.objectives import member_accuracy as member_accuracy
from sandlab.learning.objectives import member_loss as member_loss
from sandlab.learning.optim import Adam as Adam
from sandlab.learning.optim import Normalised as Normalised
from sandlab.learning.optim import OptimizerConfig as OptimizerConfig
from sandlab.learning.optim import SGD as SGD
from sandlab.learning.optim import TorchOptimizer as TorchOptimizer
from sandlab.learning.optim import clip_rows as clip_rows
from sandlab.learning.optim import make_optimizer as make_optimizer
from sandlab.learning.parallel.generalization import TotalVariationBound as TotalVariationBound
from sandlab.learning.parallel.generalization import empirical_law as empirical_law
from sandlab.learning.parallel.generalization import masked_divergence as masked_divergence
from sandlab.learning.parallel.generalization import sampled_divergence as sampled_divergence
from sandlab.learning.parallel.information import asymptotic_variance as asymptotic_variance
from sandlab.learning.parallel.information import conditional_score as conditional_score
from sandlab.learning.parallel.information import fisher_information as fisher_information
from sandlab.learning.parallel.information import mask_information as mask_information
from sandlab.learning.parallel.information import masked_curvature as masked_curvature
from sandlab.learning.parallel.information import sandwich_variance as sandwich_variance
from sandlab.learning.parallel.mask_design import MaskDesign as MaskDesign
from sandlab.learning.parallel.mask_design import best_mask_law as best_mask_law
from sandlab.learning.parallel.pseudolikelihood import Fitted as Fitted
from sandlab.learning.parallel.pseudolikelihood import MaskedCounts as MaskedCounts
from sandlab.learning.parallel.pseudolikelihood import MaskedLoss as MaskedLoss
from sandlab.learning.parallel.pseudolikelihood import draw_counts as draw_counts
from sandlab.learning.parallel.pseudolikelihood import fit_masked as fit_masked
from sandlab.learning.parallel.pseudolikelihood import mask_law_of as mask_law_of
from sandlab.learning.parallel.refinement import RefinementLoss as RefinementLoss
from sandlab.learning.parallel.refinement import TeacherForcing as TeacherForcing
from sandlab.learning.parallel.refinement import corrupt as corrupt
from sandlab.learning.parallel.refinement import stutters as stutters
from sandlab.learning.penalties import InvariantLogits as InvariantLogits
from sandlab.learning.penalties import Penalised as Penalised
from sandlab.learning.penalties import Penalty as Penalty
from sandlab.learning.penalties import SequenceMean as SequenceMean
from sandlab.learning.penalties import Sharpening as Sharpening
from sandlab.learning.penalties import row_sharpness as row_sharpness
from sandlab.learning.population import Population as Population
from sandlab.learning.population import STRATEGIES as STRATEGIES
from sandlab.learning.population import build_member as build_member
from sandlab.learning.population import per_member as per_member
from sandlab.learning.population import scale_weights as scale_weights
from sandlab.learning.reasoning.algorithms import TheoryStage as TheoryStage
from sandlab.learning.reasoning.algorithms import curriculum_gd as curriculum_gd
from sandlab.learning.reasoning.algorithms import enumerate_lego as enumerate_lego
from sandlab.learning.reasoning.algorithms import next_clause_loss as next_clause_loss
from sandlab.learning.reasoning.algorithms import recursive_self_training as recursive_self_training
from sandlab.learning.reasoning.algorithms import relabelled as relabelled
from sandlab.learning.reasoning.annotation import Labels as Labels
from sandlab.learning.reasoning.annotation import greedy_answers as greedy_answers
from sandlab.learning.reasoning.features import FeatureDescent as FeatureDescent
from sandlab.learning.reasoning.features import FeatureTraining as FeatureTraining
from sandlab.learning.reasoning.features import RetrievalDescent as RetrievalDescent
from sandlab.learning.reasoning.features import RetrievalTraining as RetrievalTraining
from sandlab.learning.reasoning.features import train_features as train_features
from sandlab.learning.reasoning.features import train_retrieval as train_retrieval
from sandlab.learning.reasoning.reduced import Chains as Chains
from sandlab.learning.reasoning.reduced import Descent as Descent
from sandlab.learning.reasoning.reduced import ReducedLego as ReducedLego
from sandlab.learning.reasoning.reduced import attention_left_over as attention_left_over
from sandlab.learning.reasoning.reduced import attention_masses as attention_masses
from sandlab.learning.reasoning.reduced import enumerate_chains as enumerate_chains
from sandlab.learning.reasoning.reduced import sample_chains as sample_chains
from sandlab.learning.reasoning.self_training import LabelledChains as LabelledChains
from sandlab.learning.reasoning.self_training import SelfTrainingStage as SelfTrainingStage
from sandlab.learning.reasoning.self_training import StageLog as StageLog
from sandlab.learning.reasoning.self_training import label_chains as label_chains
from sandlab.learning.reasoning.self_training import self_train as self_train
from sandlab.learning.schedules import Constant as Constant
from sandlab.learning.schedules import Cosine as Cosine
from sandlab.learning.schedules import Linear as Linear
from sandlab.learning.schedules import OneCycle as OneCycle
from sandlab.learning.schedules import PowerDecay as PowerDecay
from sandlab.learning.schedules import ReduceLROnPlateau as ReduceLROnPlateau
from sandlab.learning.schedules import SCHEDULES as SCHEDULES
from sandlab.learning.schedules import Schedule as Schedule
from sandlab.learning.schedules import StepDecay as StepDecay
from sandlab.learning.schedules import averaging as averaging
from sandlab.learning.schedules import factors as factors
from sandlab.learning.stopping import EarlyStop as EarlyStop
from sandlab.learning.streaming import Finished as Finished
from sandlab.learning.streaming import Member as Member
from sandlab.learning.streaming import stream as stream
from sandlab.learning.topics.losses import MaskedSquares as MaskedSquares
from sandlab.learning.topics.losses import frobenius as frobenius
from sandlab.learning.topics.stages import TopicStage as TopicStage
from sandlab.learning.topics.stages import alternating_stages as alternating_stages
from sandlab.learning.topics.stages import train_stages as train_stages
from sandlab.learning.topics.stages import two_stages as two_stages
from sandlab.learning.training import Checkpoint as Checkpoint
from sandlab.learning.training import Curriculum as Curriculum
from sandlab.learning.training import Diverged as Diverged
from sandlab.learning.training import evaluate as evaluate
from sandlab.learning.training import train as train

__all__ = [
    "Adam",
    "Basin",
    "Candidate",
    "Chains",
    "Checkpoint",
    "CheckpointStore",
    "ClosedFormObjective",
    "Constant",
    "ContrastiveLoss",
    "ContrastiveObjective",
    "ContrastiveSquares",
    "Cosine",
    "CrossEntropy",
    "Curriculum",
    "Custom",
    "DESCENT_METHODS",
    "Descent",
    "Diverged",
    "Drill",
    "DrillRuns",
    "EMResult",
    "EarlyStop",
    "EqualSplit",
    "EvenLogit",
    "Experiment",
    "Factors",
    "FeatureDescent",
    "FeatureTraining",
    "Finished",
    "Fitted",
    "Flow",
    "Forward",
    "HermiteMoments",
    "HingeMix",
    "History",
    "InvariantLogits",
    "KappaSplit",
    "KernelEstimate",
    "LabelCache",
    "LabelledChains",
    "Labels",
    "LastLabel",
    "Lesson",
    "LessonPlan",
    "Linear",
    "LogitClassifier",
    "LossFunction",
    "MARGIN_LOSSES",
    "MarginLoss",
    "MaskDesign",
    "MaskedCounts",
    "MaskedLoss",
    "MaskedSquares",
    "MaskedToken",
    "Member",
    "MemberBatch",
    "MemoryTraining",
    "NCEProblem",
    "NT",
    "NextToken",
    "Normalised",
    "OBJECTIVES",
    "Objective",
    "OneCycle",
    "OneLayerMarkovTheory",
    "OneShot",
    "OptimizerConfig",
    "ParameterError",
    "ParametricFit",
    "Penalised",
    "Penalty",
    "PerceptronStack",
    "Phases",
    "PolynomialLogit",
    "Population",
    "PositionLabel",
    "PowerDecay",
    "Probe",
    "QuadratureObjective",
    "RateSearch",
    "ReduceLROnPlateau",
    "ReducedLego",
    "RefinementLoss",
    "RetrievalDescent",
    "RetrievalTraining",
    "Runs",
    "SADDLE",
    "SADDLE_ENERGY",
    "SCHEDULES",
    "SELECTION_RULES",
    "SGD",
    "STRATEGIES",
    "SampleObjective",
    "Scaled",
    "Schedule",
    "SelfTrainingStage",
    "SequenceMean",
    "Sharpening",
    "Snapshot",
    "SoftTarget",
    "SquaredError",
    "Stabiliser",
    "StageLog",
    "StepDecay",
    "TWO_TOKEN_TASKS",
    "TaughtWorld",
    "TeacherForcing",
    "TheoryStage",
    "TheoryWeights",
    "Together",
    "TokenMatching",
    "TopicStage",
    "TorchOptimizer",
    "TotalVariationBound",
    "Training",
    "Trajectory",
    "TwoShot",
    "accuracy_phases",
    "align",
    "alternating_stages",
    "as_objective",
    "as_valid_hmm",
    "asymptotic_variance",
    "attention_left_over",
    "attention_masses",
    "averaging",
    "best_mask_law",
    "bisect_sizes",
    "build_member",
    "candidates_from_columns",
    "clip_rows",
    "conditional_score",
    "conditional_table",
    "conditionals_table",
    "corrupt",
    "curriculum_gd",
    "distil",
    "distillation_loss",
    "draw_counts",
    "drill",
    "empirical_law",
    "enumerate_chains",
    "enumerate_lego",
    "equally_spaced",
    "evaluate",
    "every_sign",
    "exact_moments",
    "expectation_maximisation",
    "factors",
    "first_layer_descent",
    "first_stage",
    "fisher_information",
    "fit_logit",
    "fit_logit_on",
    "fit_masked",
    "fit_parametric",
    "fit_parametric_adam",
    "fit_parametric_stream",
    "fit_table",
    "flow_energy",
    "flow_gain",
    "frobenius",
    "greedy_answers",
    "hankel_condition",
    "jennrich",
    "joint_head_table",
    "joint_moment_hmm",
    "keep_weights",
    "kruskal_condition",
    "kruskal_rank",
    "label_chains",
    "learn",
    "learn_together",
    "log_mean_exp",
    "loss_phases",
    "majority_coefficient",
    "make_optimizer",
    "margin_loss",
    "mask_information",
    "mask_law_of",
    "masked_curvature",
    "masked_divergence",
    "masked_mean",
    "member_accuracy",
    "member_loss",
    "memory_accuracies",
    "memory_capacity",
    "mid_transition",
    "mixture_from_moments",
    "multiples_of",
    "network_logit",
    "network_predictor",
    "newton_direction",
    "next_clause_loss",
    "optimise",
    "ou_logit",
    "parameter_error",
    "peak",
    "per_member",
    "polish",
    "posterior_rows",
    "read_ghmm_pairwise",
    "read_ghmm_two_tokens",
    "read_hmm",
    "read_network_ghmm",
    "read_ou",
    "recover",
    "recover_hmm",
    "recovers_support",
    "recursive_self_training",
    "relabelled",
    "row_sharpness",
    "sample_chains",
    "sampled_divergence",
    "sampled_moments",
    "sampled_predictor",
    "sandwich_variance",
    "saturated_columns",
    "scale_weights",
    "search_rate",
    "second_stage",
    "self_train",
    "separate_heads_table",
    "shifted_mean",
    "soften",
    "steps_to_reach",
    "stream",
    "stutters",
    "task_tensor",
    "token_matching_config",
    "train",
    "train_features",
    "train_retrieval",
    "train_stages",
    "transitions_from_density",
    "two_stages",
    "vertex_columns",
    "without_weights",
]
