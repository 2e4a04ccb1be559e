"""The store on disk: results of jobs, runs of studies, the index over both."""
