"""What the replication of the Sparsefinder papers needs around the library: texts, models, measurements, claims."""
