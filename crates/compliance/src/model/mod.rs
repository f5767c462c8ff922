//! What is managed: nodes, groups and their queries, techniques, directives, rules, parameters.
