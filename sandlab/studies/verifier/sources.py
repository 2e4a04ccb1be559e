"""The sources of this chapter, written once."""

QUERIES = "Botta, Li, Mehta, Ash, Zhang & Risteski 2025"
WALKS = "Rohatgi, Shetty, Saless, Li, Moitra, Risteski & Foster 2025"
THESIS = "Li 2025 (thesis)"
