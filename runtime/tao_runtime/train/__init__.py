"""Fine-tune a vision-language model: the loop and its parts."""
