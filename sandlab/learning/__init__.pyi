# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab.learning.diffusions.classifiers import EvenLogit as EvenLogit
from sandlab.learning.diffusions.classifiers import KernelEstimate as KernelEstimate
from sandlab.learning.diffusions.classifiers import LogitClassifier as LogitClassifier
from sandlab.learning.diffusions.classifiers import PolynomialLogit as PolynomialLogit
from sandlab.learning.diffusions.classifiers import fit_logit as fit_logit
from sandlab.learning.diffusions.classifiers import fit_table as fit_table
from sandlab.learning.diffusions.classifiers import ou_logit as ou_logit
from sandlab.learning.diffusions.classifiers import read_ou as read_ou
from sandlab.learning.experiment import Experiment as Experiment
from sandlab.learning.experiment import Probe as Probe
from sandlab.learning.experiment import Runs as Runs
from sandlab.learning.experiment import Snapshot as Snapshot
from sandlab.learning.experiment import Training as Training
from sandlab.learning.history import History as History
from sandlab.learning.hmm.density_recovery import HermiteMoments as HermiteMoments
from sandlab.learning.hmm.density_recovery import exact_moments as exact_moments
from sandlab.learning.hmm.density_recovery import mixture_from_moments as mixture_from_moments
from sandlab.learning.hmm.density_recovery import sampled_moments as sampled_moments
from sandlab.learning.hmm.density_recovery import transitions_from_density as transitions_from_density
from sandlab.learning.hmm.gaussian_recovery import Candidate as Candidate
from sandlab.learning.hmm.gaussian_recovery import read_ghmm_pairwise as read_ghmm_pairwise
from sandlab.learning.hmm.gaussian_recovery import read_ghmm_two_tokens as read_ghmm_two_tokens
from sandlab.learning.hmm.gaussian_recovery import recover as recover
from sandlab.learning.hmm.gaussian_recovery import saturated_columns as saturated_columns
from sandlab.learning.hmm.parametric import ParametricFit as ParametricFit
from sandlab.learning.hmm.parametric import fit_parametric as fit_parametric
from sandlab.learning.hmm.parametric import parametric_predictions as parametric_predictions
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
from sandlab.learning.hmm.tensors import Factors as Factors
from sandlab.learning.hmm.tensors import jennrich as jennrich
from sandlab.learning.hmm.tensors import kruskal_condition as kruskal_condition
from sandlab.learning.hmm.tensors import kruskal_rank as kruskal_rank
from sandlab.learning.hmm.tensors import polish as polish
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
from sandlab.learning.training import Checkpoint as Checkpoint
from sandlab.learning.training import Curriculum as Curriculum
from sandlab.learning.training import Diverged as Diverged
from sandlab.learning.training import evaluate as evaluate
from sandlab.learning.training import train as train

__all__ = [
    "Adam",
    "Basin",
    "Candidate",
    "Checkpoint",
    "ClosedFormObjective",
    "Constant",
    "ContrastiveLoss",
    "ContrastiveObjective",
    "Cosine",
    "CrossEntropy",
    "Curriculum",
    "DESCENT_METHODS",
    "Diverged",
    "EMResult",
    "EarlyStop",
    "EvenLogit",
    "Experiment",
    "Factors",
    "Finished",
    "Flow",
    "Forward",
    "HermiteMoments",
    "History",
    "InvariantLogits",
    "KernelEstimate",
    "LastLabel",
    "Linear",
    "LogitClassifier",
    "LossFunction",
    "MARGIN_LOSSES",
    "MarginLoss",
    "MaskedSquares",
    "MaskedToken",
    "Member",
    "MemberBatch",
    "NCEProblem",
    "NextToken",
    "Normalised",
    "OBJECTIVES",
    "Objective",
    "OneCycle",
    "OneLayerMarkovTheory",
    "OptimizerConfig",
    "ParameterError",
    "ParametricFit",
    "Penalised",
    "Penalty",
    "PolynomialLogit",
    "Population",
    "PositionLabel",
    "PowerDecay",
    "Probe",
    "QuadratureObjective",
    "RateSearch",
    "ReduceLROnPlateau",
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
    "SequenceMean",
    "Sharpening",
    "Snapshot",
    "SoftTarget",
    "SquaredError",
    "Stabiliser",
    "StepDecay",
    "TWO_TOKEN_TASKS",
    "TokenMatching",
    "TorchOptimizer",
    "Training",
    "Trajectory",
    "align",
    "as_objective",
    "as_valid_hmm",
    "averaging",
    "build_member",
    "clip_rows",
    "conditional_table",
    "evaluate",
    "exact_moments",
    "expectation_maximisation",
    "factors",
    "first_layer_descent",
    "fit_logit",
    "fit_parametric",
    "fit_table",
    "flow_energy",
    "flow_gain",
    "frobenius",
    "jennrich",
    "joint_moment_hmm",
    "kruskal_condition",
    "kruskal_rank",
    "log_mean_exp",
    "make_optimizer",
    "margin_loss",
    "masked_mean",
    "member_accuracy",
    "member_loss",
    "mixture_from_moments",
    "newton_direction",
    "optimise",
    "ou_logit",
    "parameter_error",
    "parametric_predictions",
    "per_member",
    "polish",
    "read_ghmm_pairwise",
    "read_ghmm_two_tokens",
    "read_hmm",
    "read_ou",
    "recover",
    "recover_hmm",
    "row_sharpness",
    "sampled_moments",
    "saturated_columns",
    "scale_weights",
    "search_rate",
    "shifted_mean",
    "steps_to_reach",
    "stream",
    "task_tensor",
    "token_matching_config",
    "train",
    "transitions_from_density",
]
