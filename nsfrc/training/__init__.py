"""Training: perception from figures or scenes of no class, concepts from labelled examples."""
