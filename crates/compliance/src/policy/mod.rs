//! From the model and its nodes to one policy a node, and to the reports that are expected of it.
