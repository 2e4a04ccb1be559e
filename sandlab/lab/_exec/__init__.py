"""How jobs run: what a job is, the code it depends on, local, process and Ray execution."""
