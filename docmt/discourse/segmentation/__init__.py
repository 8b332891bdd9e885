"""Segmentation into elementary discourse units (EDUs): a trainable segmenter after Wang et al. (2018)."""
