"""Speed ratios against baselines that run beside ours."""
