"""What a checkpoint computes, in float64 and by the flow of whoever trains or serves it."""
