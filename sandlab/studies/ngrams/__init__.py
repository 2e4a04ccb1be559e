"""In-context n-grams: stage-wise learning and near-stationary sub-n-grams (Varre, Yüce and Flammarion 2025)."""
