"""Ask a model a data set's questions, and judge its answers."""
