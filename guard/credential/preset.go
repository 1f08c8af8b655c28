package credential

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

//go:embed presets.txt
var presetTable string

// testTime is how long the request of a test may take.
const testTime = 20 * time.Second

// A Preset is a service whose tokens are masked often.
type Preset struct {
	Name, Variable string
	Hosts          []string // that get the value
	URL            string   // of a harmless request; "" if there is none
	header, value  string   // of that request
}

// Presets returns all presets.
func Presets() (list []Preset) {
	for line := range strings.Lines(presetTable) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 5)
		if len(fields) < 4 || fields[0] == "#" {
			continue
		}
		p := Preset{Name: fields[0], Variable: fields[1], Hosts: strings.Split(fields[2], ",")}
		if len(fields) == 5 {
			p.URL = fields[3]
			p.header, p.value, _ = strings.Cut(fields[4], ": ")
		}
		list = append(list, p)
	}
	return list
}

// For returns the preset whose test request goes to one of the hosts of a variable; false if there is none.
func For(hosts []string) (Preset, bool) {
	for _, p := range Presets() {
		if u, err := url.Parse(p.URL); err == nil && u.Host != "" && slices.Contains(hosts, u.Host) {
			return p, true
		}
	}
	return Preset{}, false
}

// Test sends the test request with a value. It returns an error if the service does not accept the value.
func (p Preset) Test(ctx context.Context, client *http.Client, value string) error {
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		return err
	}
	r.Header.Set(p.header, strings.Replace(p.value, "$", value, 1))
	r.Header.Set("Anthropic-Version", "2023-06-01") // other services ignore it
	direct := *client
	// A redirect would send the value to another host.
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := direct.Do(r)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", p.URL, answer.Status)
	}
	return nil
}
