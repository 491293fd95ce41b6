package envelope

// Line is one line of the table of fields, for tests.
type Line struct{ Name, Path, Asked string }

// Lines lists the table.
func Lines() []Line {
	out := make([]Line, len(fields))
	for i, f := range fields {
		out[i] = Line{f.name, f.path, f.asked}
	}
	return out
}

// Tighten lets e have the tighter of both in every field that has a tighter one.
func Tighten(e, by Envelope) Envelope {
	for _, f := range fields {
		f.tighten(&e, &by)
	}
	return e
}
