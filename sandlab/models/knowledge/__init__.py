"""The chapter of facts and associative memories."""
