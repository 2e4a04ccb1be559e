# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).

from sandlab.models.attention import Attention as Attention
from sandlab.models.attention import Slot as Slot
from sandlab.models.attention import allowed_keys as allowed_keys
from sandlab.models.attention import attention_pattern as attention_pattern
from sandlab.models.attention import causal_mask as causal_mask
from sandlab.models.attention import rotate as rotate
from sandlab.models.automata.theory import TheoryTransformer as TheoryTransformer
from sandlab.models.automata.theory import TheoryTransformerConfig as TheoryTransformerConfig
from sandlab.models.automata.theory import activate as activate
from sandlab.models.base import Config as Config
from sandlab.models.base import Model as Model
from sandlab.models.base import build as build
from sandlab.models.base import check_length as check_length
from sandlab.models.base import configured as configured
from sandlab.models.base import seeded as seeded
from sandlab.models.convert import from_hugging_face as from_hugging_face
from sandlab.models.convert import to_hugging_face as to_hugging_face
from sandlab.models.convert import to_transformer_lens as to_transformer_lens
from sandlab.models.dyck.codes import BalanceLayer as BalanceLayer
from sandlab.models.dyck.codes import BalanceTransformer as BalanceTransformer
from sandlab.models.dyck.codes import BalanceTransformerConfig as BalanceTransformerConfig
from sandlab.models.dyck.codes import MinimalDyck as MinimalDyck
from sandlab.models.dyck.codes import MinimalDyckConfig as MinimalDyckConfig
from sandlab.models.dyck.codes import code_table as code_table
from sandlab.models.dyck.codes import depth_codes as depth_codes
from sandlab.models.dyck.codes import pair_code as pair_code
from sandlab.models.flip_flop.linear_memory import LinearMemoryConfig as LinearMemoryConfig
from sandlab.models.flip_flop.linear_memory import LinearPositionMemory as LinearPositionMemory
from sandlab.models.hooks import ActivationCache as ActivationCache
from sandlab.models.hooks import Occurrences as Occurrences
from sandlab.models.hooks import VmapRecording as VmapRecording
from sandlab.models.hooks import matching as matching
from sandlab.models.hooks import patch as patch
from sandlab.models.hooks import record as record
from sandlab.models.hybrid import Hybrid as Hybrid
from sandlab.models.hybrid import HybridConfig as HybridConfig
from sandlab.models.io import load as load
from sandlab.models.io import save as save
from sandlab.models.layers import Embedding as Embedding
from sandlab.models.layers import HookPoint as HookPoint
from sandlab.models.layers import LayerNorm as LayerNorm
from sandlab.models.layers import Linear as Linear
from sandlab.models.layers import Positions as Positions
from sandlab.models.layers import RMSNorm as RMSNorm
from sandlab.models.layers import align as align
from sandlab.models.layers import contract as contract
from sandlab.models.layers import linear as linear
from sandlab.models.layers import look_up as look_up
from sandlab.models.layers import module_list as module_list
from sandlab.models.layers import one_hot as one_hot
from sandlab.models.markov.disentangled import DisentangledTransformer as DisentangledTransformer
from sandlab.models.markov.disentangled import DisentangledTransformerConfig as DisentangledTransformerConfig
from sandlab.models.markov.one_layer import OneLayerMarkov as OneLayerMarkov
from sandlab.models.markov.one_layer import OneLayerMarkovConfig as OneLayerMarkovConfig
from sandlab.models.markov.one_layer import ThreeParameterMarkov as ThreeParameterMarkov
from sandlab.models.markov.one_layer import ThreeParameterMarkovConfig as ThreeParameterMarkovConfig
from sandlab.models.mlp import MLP as MLP
from sandlab.models.mlp import MLPConfig as MLPConfig
from sandlab.models.nce.density_ratio import DensityRatio as DensityRatio
from sandlab.models.nce.density_ratio import DensityRatioConfig as DensityRatioConfig
from sandlab.models.nce.density_ratio import ResNet18 as ResNet18
from sandlab.models.ngrams.presets import cat_tf as cat_tf
from sandlab.models.ngrams.presets import tf_additive as tf_additive
from sandlab.models.ngrams.presets import tf_additive_mlp as tf_additive_mlp
from sandlab.models.ngrams.simplified import SimplifiedTransformer as SimplifiedTransformer
from sandlab.models.ngrams.simplified import SimplifiedTransformerConfig as SimplifiedTransformerConfig
from sandlab.models.recurrent import LSTM as LSTM
from sandlab.models.recurrent import LSTMConfig as LSTMConfig
from sandlab.models.recurrent import LSTMLayer as LSTMLayer
from sandlab.models.recurrent import RNN as RNN
from sandlab.models.recurrent import RNNConfig as RNNConfig
from sandlab.models.recurrent import RNNLayer as RNNLayer
from sandlab.models.state_space import MixedLayer as MixedLayer
from sandlab.models.state_space import ShortConvolution as ShortConvolution
from sandlab.models.state_space import StateSpace as StateSpace
from sandlab.models.state_space import StateSpaceConfig as StateSpaceConfig
from sandlab.models.state_space import StateSpaceMixer as StateSpaceMixer
from sandlab.models.topics.one_layer import OneLayerTopics as OneLayerTopics
from sandlab.models.topics.one_layer import OneLayerTopicsConfig as OneLayerTopicsConfig
from sandlab.models.transformer import MLPBlock as MLPBlock
from sandlab.models.transformer import Transformer as Transformer
from sandlab.models.transformer import TransformerConfig as TransformerConfig
from sandlab.models.transformer import sinusoids as sinusoids

__all__ = [
    "ActivationCache",
    "Attention",
    "BalanceLayer",
    "BalanceTransformer",
    "BalanceTransformerConfig",
    "Config",
    "DensityRatio",
    "DensityRatioConfig",
    "DisentangledTransformer",
    "DisentangledTransformerConfig",
    "Embedding",
    "HookPoint",
    "Hybrid",
    "HybridConfig",
    "LSTM",
    "LSTMConfig",
    "LSTMLayer",
    "LayerNorm",
    "Linear",
    "LinearMemoryConfig",
    "LinearPositionMemory",
    "MLP",
    "MLPBlock",
    "MLPConfig",
    "MinimalDyck",
    "MinimalDyckConfig",
    "MixedLayer",
    "Model",
    "Occurrences",
    "OneLayerMarkov",
    "OneLayerMarkovConfig",
    "OneLayerTopics",
    "OneLayerTopicsConfig",
    "Positions",
    "RMSNorm",
    "RNN",
    "RNNConfig",
    "RNNLayer",
    "ResNet18",
    "ShortConvolution",
    "SimplifiedTransformer",
    "SimplifiedTransformerConfig",
    "Slot",
    "StateSpace",
    "StateSpaceConfig",
    "StateSpaceMixer",
    "TheoryTransformer",
    "TheoryTransformerConfig",
    "ThreeParameterMarkov",
    "ThreeParameterMarkovConfig",
    "Transformer",
    "TransformerConfig",
    "VmapRecording",
    "activate",
    "align",
    "allowed_keys",
    "attention_pattern",
    "build",
    "cat_tf",
    "causal_mask",
    "check_length",
    "code_table",
    "configured",
    "contract",
    "depth_codes",
    "from_hugging_face",
    "linear",
    "load",
    "look_up",
    "matching",
    "module_list",
    "one_hot",
    "pair_code",
    "patch",
    "record",
    "rotate",
    "save",
    "seeded",
    "sinusoids",
    "tf_additive",
    "tf_additive_mlp",
    "to_hugging_face",
    "to_transformer_lens",
]
