package builtin

import "math"

// guardSteps begins to treat what steps write as what a command leaves: a command may have made it, and the file was
// not checked while git did not obey it. The function that it returns ends that: it removes what git would run, and
// returns notes of that.
func guardSteps(env *Env) (end func() (notes []string)) {
	keeper, dirs := env.Runtime.baseline, outermost(env.Policy.Roots())
	_, from := keeper.Since(math.MaxInt)
	keeper.Begin(dirs, nil)
	return func() (notes []string) {
		defer keeper.End(dirs)
		err := keeper.Check()
		notes, _ = keeper.Since(from)
		if err != nil {
			notes = append(notes, err.Error())
		}
		return notes
	}
}
