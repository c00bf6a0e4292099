"""Training: perception from figures of no pattern, concepts from labelled examples."""
