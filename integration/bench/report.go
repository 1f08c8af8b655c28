package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A report is all that was measured in a run.
type report struct {
	Date    string   `json:"date"`
	Commit  string   `json:"commit"`
	Machine string   `json:"machine"`
	Rivals  []string `json:"rivals"` // with their versions
	Rows    []*row   `json:"rows"`
	Notes   []string `json:"notes"`
}

// A row is one thing that was measured on several rivals side by side.
type row struct {
	Name   string               `json:"name"`
	Unit   string               `json:"unit"`
	Values map[string][]float64 `json:"values"` // of each rival, round by round
	order  []string             // of the rivals

	// Queries are the values of a row that is a set of queries: Values are then their geometric means.
	Queries []*row `json:"queries,omitempty"`
}

func newReport() *report {
	return &report{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: commit(),
		Machine: fmt.Sprintf("%d cores, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
	}
}

// commit names what is measured: the checkout's commit, and whether it was changed since.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=10").Output()
	if err == nil {
		return strings.TrimSpace(string(out))
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

func (r *report) row(name, unit string) *row {
	one := newRow(name, unit)
	r.Rows = append(r.Rows, one)
	return one
}

func newRow(name, unit string) *row {
	return &row{Name: name, Unit: unit, Values: map[string][]float64{}}
}

// note says what a reader has to know of the figures.
func (r *report) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

func (w *row) add(name string, value float64) {
	if _, ok := w.Values[name]; !ok {
		w.order = append(w.order, name)
	}
	w.Values[name] = append(w.Values[name], value)
}

func (w *row) drop(name string) {
	delete(w.Values, name)
	w.order = slices.DeleteFunc(w.order, func(n string) bool { return n == name })
}

// summarize makes the values of a row of those of its queries: round by round the geometric mean of those that a
// program has answered, so that a slow query counts no more than a fast one.
func (w *row) summarize() {
	for _, name := range w.Queries[0].order {
		for round := range w.rounds(name) {
			var all []float64
			for _, q := range w.Queries {
				if values := q.Values[name]; len(values) > 0 {
					all = append(all, values[round])
				}
			}
			w.add(name, geomean(all))
		}
	}
}

// rounds is in how many rounds a program was measured: in a set of queries, with every one that it has answered at all.
func (w *row) rounds(name string) int {
	if len(w.Queries) == 0 {
		return len(w.Values[name])
	}
	n := 0
	for _, q := range w.Queries {
		if values := len(q.Values[name]); values > 0 && (n == 0 || values < n) {
			n = values
		}
	}
	return n
}

// against compares the host with a rival: in a set of queries by the geometric mean over those that both have answered.
func (w *row) against(mine, theirs string) ratio {
	if len(w.Queries) == 0 {
		return paired(w.Values[mine], w.Values[theirs])
	}
	return bootstrap(min(w.rounds(mine), w.rounds(theirs)), func(rounds []int) float64 {
		var all []float64
		for _, q := range w.Queries {
			if len(q.Values[mine]) > 0 && len(q.Values[theirs]) > 0 {
				all = append(all, median(pick(q.Values[mine], rounds))/median(pick(q.Values[theirs], rounds)))
			}
		}
		return geomean(all)
	})
}

// worst is the query with the highest ratio.
func (w *row) worst(mine, theirs string) (name string, value float64) {
	for _, q := range w.Queries {
		if len(q.Values[mine]) == 0 || len(q.Values[theirs]) == 0 {
			continue
		}
		if r := median(q.Values[mine]) / median(q.Values[theirs]); r > value {
			name, value = q.Name, r
		}
	}
	return name, value
}

// A verdict is a ratio and what it was meant to be.
type verdict struct {
	row, rival string
	ratio      ratio
	worst      float64 // of a set of queries, else 0
	target     goal
}

// verdicts compares the host with every rival in every row.
func (r *report) verdicts(goals []goal) []verdict {
	var all []verdict
	for _, w := range r.Rows {
		if len(w.Values[ours]) == 0 {
			continue
		}
		for _, name := range w.order {
			if name == ours || name == floorName {
				continue
			}
			v := verdict{row: w.Name, rival: name, ratio: w.against(ours, name)}
			_, v.worst = w.worst(ours, name)
			for _, g := range goals {
				if g.row == w.Name && g.rival == name {
					v.target = g
				}
			}
			all = append(all, v)
		}
	}
	return all
}

// cells are the columns of a verdict in a table.
func (v verdict) cells() []string {
	cells := []string{v.row, v.rival, fmt.Sprintf("%.3g (%.3g–%.3g)", v.ratio.Value, v.ratio.Low, v.ratio.High), "", "",
		""}
	if v.worst > 0 {
		cells[3] = fmt.Sprintf("%.3g", v.worst)
	}
	if v.target.most > 0 {
		cells[4], cells[5] = "≤ "+fmt.Sprint(v.target.most), "met"
		if v.target.worst > 0 {
			cells[4] += fmt.Sprintf(", worst ≤ %v", v.target.worst)
		}
		if v.ratio.Value > v.target.most || v.target.worst > 0 && v.worst > v.target.worst {
			cells[5] = "missed"
		}
	}
	return cells
}

// cells are the columns of a limit in the table of ratios: the host stands against none.
func (l limit) cells(w *row) []string {
	values := w.Values[ours]
	m := bootstrap(len(values), func(rounds []int) float64 { return median(pick(values, rounds)) })
	judged := "met"
	if m.Value > l.most {
		judged = "missed"
	}
	return []string{l.row, "", fmt.Sprintf("%.3g %s (%.3g–%.3g)", m.Value, w.Unit, m.Low, m.High), "",
		fmt.Sprintf("≤ %v %s", l.most, w.Unit), judged}
}

// A table is printed in columns, or as Markdown.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, cells := range append([][]string{t.head}, t.rows...) {
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

func (t *table) markdown(out io.Writer) {
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(t.head, " | "), strings.Repeat("---|", len(t.head)))
	for _, cells := range t.rows {
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
	}
	fmt.Fprintln(out)
}

// tables are the figures, and the comparisons.
func (r *report) tables() (figures, ratios *table) {
	figures = &table{head: []string{"what", "program", "median", "p99", "rounds"}}
	for _, w := range r.Rows {
		for _, name := range w.order {
			v := w.Values[name]
			figures.add(w.Name, name, fmt.Sprintf("%.3g %s", median(v), w.Unit),
				fmt.Sprintf("%.3g %s", quantile(v, 0.99), w.Unit), fmt.Sprint(len(v)))
		}
	}
	ratios = &table{head: []string{"what", "against", "ratio (95 %)", "worst query", "target", ""}}
	for _, v := range r.verdicts(goals()) {
		ratios.add(v.cells()...)
	}
	for _, l := range limits() {
		for _, w := range r.Rows {
			if w.Name == l.row && len(w.Values[ours]) > 0 {
				ratios.add(l.cells(w)...)
			}
		}
	}
	return figures, ratios
}

// print writes the whole report, in columns or as Markdown.
func (r *report) print(out io.Writer, markdown bool) error {
	figures, ratios := r.tables()
	fmt.Fprintf(out, "%s, commit %s, %s\n\n", r.Date, r.Commit, r.Machine)
	fmt.Fprintf(out, "Measured side by side: %s.\n\n", strings.Join(r.Rivals, ", "))
	for _, t := range []*table{ratios, figures} {
		if markdown {
			t.markdown(out)
			continue
		}
		if err := t.print(out); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(out, "- %s\n", n)
	}
	return nil
}

// save writes a file by a function, closing it in any case.
func save(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func (r *report) json(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", " ")
	return e.Encode(r)
}
