package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// quantile returns the value below which a share of the values lies; NaN if there are none.
func quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func median(values []float64) float64 {
	if n := len(values); n > 0 && n%2 == 0 {
		sorted := slices.Sorted(slices.Values(values))
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return quantile(values, 0.5)
}

// geomean is the geometric mean.
func geomean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}

// A ratio is an estimate with the bounds of its confidence.
type ratio struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// confidence is the share of resamples within the bounds of a ratio.
const confidence = 0.95

// resamples is how often samples are drawn anew for a bound: enough that a bound's second digit stays.
const resamples = 2000

// paired returns the ratio of the medians of two series whose elements were measured side by side. Its bounds come from
// the bootstrap over rounds (Efron): whole rounds are drawn, so that what slows a round down slows both of its sides.
func paired(mine, theirs []float64) ratio {
	n := min(len(mine), len(theirs))
	return bootstrap(n, func(rounds []int) float64 { return median(pick(mine, rounds)) / median(pick(theirs, rounds)) })
}

// bootstrap estimates a figure that is computed of rounds. Its draws are the same in every run.
func bootstrap(n int, figure func(rounds []int) float64) ratio {
	rounds := make([]int, n)
	for i := range rounds {
		rounds[i] = i
	}
	r := ratio{Value: figure(rounds)}
	draw := rand.New(rand.NewPCG(1, 2))
	drawn := make([]float64, resamples)
	for i := range drawn {
		for j := range rounds {
			rounds[j] = draw.IntN(n)
		}
		drawn[i] = figure(rounds)
	}
	r.Low, r.High = quantile(drawn, (1-confidence)/2), quantile(drawn, (1+confidence)/2)
	return r
}

func pick(values []float64, at []int) []float64 {
	picked := make([]float64, len(at))
	for i, j := range at {
		picked[i] = values[j]
	}
	return picked
}

// growth is the exponent b of y = a·x^b that fits best in logarithms, over points beyond the first that grow at all.
func growth(x, y []float64) float64 {
	var sx, sy, sxx, sxy, n float64
	for i := range x {
		if x[i] <= 0 || y[i] <= 0 || math.IsNaN(y[i]) {
			continue
		}
		lx, ly := math.Log(x[i]), math.Log(y[i])
		sx, sy, sxx, sxy, n = sx+lx, sy+ly, sxx+lx*lx, sxy+lx*ly, n+1
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
