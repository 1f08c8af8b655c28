package main

// A goal is what a ratio was meant to be at most, and the worst of a set of queries.
type goal struct {
	row, rival  string
	most, worst float64
}

// A limit is what a median was meant to be at most in itself, in the unit of its row.
type limit struct {
	row  string
	most float64
}

// limits were set with the goals.
func limits() []limit {
	return []limit{{floodRow, 1000}, {floodMemory, 32}, {taskMemory, 64}, {maskRow, 1}}
}

// goals were set before the program was written; none was moved since.
func goals() []goal {
	return []goal{
		{row: "start to initialize", rival: claude, most: 0.05},
		{row: memoryStart, rival: claude, most: 0.15},
		{row: "Read 200 lines", rival: filesystem, most: 0.4},
		{row: "Read 200 lines ×16", rival: filesystem, most: 0.3},
		{row: "Edit", rival: filesystem, most: 0.4},
		{row: bashRow, rival: claude, most: 0.15},
		{row: besideRow, rival: process, most: 1},
		{row: searchRow(first, "small"), rival: ripgrep, most: 0.35, worst: 1},
		{row: searchRow(first, "medium"), rival: ripgrep, most: 0.75, worst: 1},
		{row: searchRow(first, "large"), rival: ripgrep, most: 0.75, worst: 1},
		{row: searchRow(page, "small"), rival: ripgrep, most: 0.05, worst: 0.2},
		{row: searchRow(page, "medium"), rival: ripgrep, most: 0.03, worst: 0.15},
		{row: searchRow(page, "large"), rival: ripgrep, most: 0.01, worst: 0.25},
		{row: searchRow(full, "small"), rival: ripgrep, most: 0.06, worst: 1},
		{row: searchRow(full, "medium"), rival: ripgrep, most: 0.06, worst: 1},
		{row: searchRow(full, "large"), rival: ripgrep, most: 0.05, worst: 1},
		{row: searchRow(plain, "small"), rival: ripgrep, most: 0.2, worst: 1},
		{row: searchRow(plain, "medium"), rival: ripgrep, most: 0.4, worst: 1},
		{row: searchRow(plain, "large"), rival: ripgrep, most: 0.35, worst: 1},
		{row: searchRow(globs, "small"), rival: ripgrep, most: 0.03, worst: 1},
		{row: searchRow(globs, "medium"), rival: ripgrep, most: 0.008, worst: 1},
		{row: searchRow(globs, "large"), rival: ripgrep, most: 0.005, worst: 1},
	}
}
