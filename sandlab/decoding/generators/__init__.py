"""Language models as decoders see them: the distribution of the next token after each of many prefixes."""
