"""The networks of progressive distillation: the theory perceptron, and GPT-2 and BERT as settings of the transformer."""
