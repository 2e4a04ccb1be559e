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
from sandlab.models.distillation.published import bert as bert
from sandlab.models.distillation.published import bert_wiki as bert_wiki
from sandlab.models.distillation.published import gpt2 as gpt2
from sandlab.models.distillation.published import gpt2_parity as gpt2_parity
from sandlab.models.distillation.sketch import draw_encoder as draw_encoder
from sandlab.models.distillation.theory_perceptron import TheoryPerceptron as TheoryPerceptron
from sandlab.models.distillation.theory_perceptron import TheoryPerceptronConfig as TheoryPerceptronConfig
from sandlab.models.distillation.theory_perceptron import perceptron as perceptron
from sandlab.models.distillation.theory_perceptron import torch_start as torch_start
from sandlab.models.dyck.codes import BalanceLayer as BalanceLayer
from sandlab.models.dyck.codes import BalanceTransformer as BalanceTransformer
from sandlab.models.dyck.codes import BalanceTransformerConfig as BalanceTransformerConfig
from sandlab.models.dyck.codes import MinimalDyck as MinimalDyck
from sandlab.models.dyck.codes import MinimalDyckConfig as MinimalDyckConfig
from sandlab.models.dyck.codes import code_table as code_table
from sandlab.models.dyck.codes import depth_codes as depth_codes
from sandlab.models.dyck.codes import pair_code as pair_code
from sandlab.models.expressivity.real_inputs import RealTransformer as RealTransformer
from sandlab.models.expressivity.real_inputs import RealTransformerConfig as RealTransformerConfig
from sandlab.models.flip_flop.linear_memory import LinearMemoryConfig as LinearMemoryConfig
from sandlab.models.flip_flop.linear_memory import LinearPositionMemory as LinearPositionMemory
from sandlab.models.hooks import ActivationCache as ActivationCache
from sandlab.models.hooks import Occurrences as Occurrences
from sandlab.models.hooks import VmapRecording as VmapRecording
from sandlab.models.hooks import matching as matching
from sandlab.models.hooks import patch as patch
from sandlab.models.hooks import record as record
from sandlab.models.hugging_face import export_hugging_face as export_hugging_face
from sandlab.models.hugging_face import register_with_transformers as register_with_transformers
from sandlab.models.hybrid import Hybrid as Hybrid
from sandlab.models.hybrid import HybridConfig as HybridConfig
from sandlab.models.io import load as load
from sandlab.models.io import save as save
from sandlab.models.knowledge.facts import FactTransformer as FactTransformer
from sandlab.models.knowledge.facts import FactTransformerConfig as FactTransformerConfig
from sandlab.models.knowledge.facts import LinearAttentionFacts as LinearAttentionFacts
from sandlab.models.knowledge.facts import LinearAttentionFactsConfig as LinearAttentionFactsConfig
from sandlab.models.knowledge.memories import AssociativeMemory as AssociativeMemory
from sandlab.models.knowledge.memories import AssociativeMemoryConfig as AssociativeMemoryConfig
from sandlab.models.knowledge.memories import random_directions as random_directions
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
from sandlab.models.own_module import OwnModule as OwnModule
from sandlab.models.own_module import OwnModuleConfig as OwnModuleConfig
from sandlab.models.parallel.encoder_decoder import DecoderCache as DecoderCache
from sandlab.models.parallel.encoder_decoder import EncoderDecoder as EncoderDecoder
from sandlab.models.parallel.encoder_decoder import EncoderDecoderConfig as EncoderDecoderConfig
from sandlab.models.parallel.presets import pd_transformer as pd_transformer
from sandlab.models.reasoning.lego import ClauseAttention as ClauseAttention
from sandlab.models.reasoning.lego import LegoConfig as LegoConfig
from sandlab.models.reasoning.lego import LegoTransformer as LegoTransformer
from sandlab.models.reasoning.smooth_relu import SMOOTH_RELU_VARIANTS as SMOOTH_RELU_VARIANTS
from sandlab.models.reasoning.smooth_relu import modified_smooth_relu as modified_smooth_relu
from sandlab.models.reasoning.smooth_relu import smooth_relu as smooth_relu
from sandlab.models.reasoning.smooth_relu import smooth_relu_slope as smooth_relu_slope
from sandlab.models.reasoning.theory import LegoTheoryConfig as LegoTheoryConfig
from sandlab.models.reasoning.theory import LegoTheoryTransformer as LegoTheoryTransformer
from sandlab.models.reasoning.theory import clause_vectors as clause_vectors
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
from sandlab.models.topics.encoder import MaskedEncoder as MaskedEncoder
from sandlab.models.topics.encoder import MaskedEncoderConfig as MaskedEncoderConfig
from sandlab.models.topics.one_layer import OneLayerTopics as OneLayerTopics
from sandlab.models.topics.one_layer import OneLayerTopicsConfig as OneLayerTopicsConfig
from sandlab.models.topics.pretrained import PretrainedEncoder as PretrainedEncoder
from sandlab.models.topics.pretrained import load_encoder as load_encoder
from sandlab.models.transformer import MLPBlock as MLPBlock
from sandlab.models.transformer import Transformer as Transformer
from sandlab.models.transformer import TransformerConfig as TransformerConfig
from sandlab.models.transformer import sinusoids as sinusoids

__all__ = [
    "ActivationCache",
    "AssociativeMemory",
    "AssociativeMemoryConfig",
    "Attention",
    "BalanceLayer",
    "BalanceTransformer",
    "BalanceTransformerConfig",
    "ClauseAttention",
    "Config",
    "DecoderCache",
    "DensityRatio",
    "DensityRatioConfig",
    "DisentangledTransformer",
    "DisentangledTransformerConfig",
    "Embedding",
    "EncoderDecoder",
    "EncoderDecoderConfig",
    "FactTransformer",
    "FactTransformerConfig",
    "HookPoint",
    "Hybrid",
    "HybridConfig",
    "LSTM",
    "LSTMConfig",
    "LSTMLayer",
    "LayerNorm",
    "LegoConfig",
    "LegoTheoryConfig",
    "LegoTheoryTransformer",
    "LegoTransformer",
    "Linear",
    "LinearAttentionFacts",
    "LinearAttentionFactsConfig",
    "LinearMemoryConfig",
    "LinearPositionMemory",
    "MLP",
    "MLPBlock",
    "MLPConfig",
    "MaskedEncoder",
    "MaskedEncoderConfig",
    "MinimalDyck",
    "MinimalDyckConfig",
    "MixedLayer",
    "Model",
    "Occurrences",
    "OneLayerMarkov",
    "OneLayerMarkovConfig",
    "OneLayerTopics",
    "OneLayerTopicsConfig",
    "OwnModule",
    "OwnModuleConfig",
    "Positions",
    "PretrainedEncoder",
    "RMSNorm",
    "RNN",
    "RNNConfig",
    "RNNLayer",
    "RealTransformer",
    "RealTransformerConfig",
    "ResNet18",
    "SMOOTH_RELU_VARIANTS",
    "ShortConvolution",
    "SimplifiedTransformer",
    "SimplifiedTransformerConfig",
    "Slot",
    "StateSpace",
    "StateSpaceConfig",
    "StateSpaceMixer",
    "TheoryPerceptron",
    "TheoryPerceptronConfig",
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
    "bert",
    "bert_wiki",
    "build",
    "cat_tf",
    "causal_mask",
    "check_length",
    "clause_vectors",
    "code_table",
    "configured",
    "contract",
    "depth_codes",
    "draw_encoder",
    "export_hugging_face",
    "from_hugging_face",
    "gpt2",
    "gpt2_parity",
    "linear",
    "load",
    "load_encoder",
    "look_up",
    "matching",
    "modified_smooth_relu",
    "module_list",
    "one_hot",
    "pair_code",
    "patch",
    "pd_transformer",
    "perceptron",
    "random_directions",
    "record",
    "register_with_transformers",
    "rotate",
    "save",
    "seeded",
    "sinusoids",
    "smooth_relu",
    "smooth_relu_slope",
    "tf_additive",
    "tf_additive_mlp",
    "to_hugging_face",
    "to_transformer_lens",
    "torch_start",
]
