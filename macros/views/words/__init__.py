"""Words: plain explanations of steps and weights, the notation of sizes."""
