package topo

// Clean takes out of a machine what cannot be right, and reports it.
func Clean(m *Machine, r *Report) {}
