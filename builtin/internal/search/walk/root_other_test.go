//go:build !linux

package walk

import "testing"

func roots(t *testing.T, path string) []*Root {
	t.Helper()
	r, err := OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	return []*Root{r}
}
