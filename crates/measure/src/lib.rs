//! Clocks, HDR histograms, time series, and the sampling of processes from /proc.
