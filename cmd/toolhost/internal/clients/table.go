package clients

import (
	_ "embed"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/tailscale/hujson"
)

//go:embed clients.json
var table []byte

// All returns the known clients, by name. They must not be modified.
var All = sync.OnceValue(func() (all []Client) {
	plain, err := hujson.Standardize(table)
	if err == nil {
		err = json.Unmarshal(plain, &all)
	}
	if err != nil {
		panic("clients.json: " + err.Error()) // cannot happen: TestTable reads the table
	}
	return all
})

// UnmarshalJSON keeps the order of the members.
func (o *object) UnmarshalJSON(raw []byte) error {
	v, err := hujson.Parse(raw)
	if err == nil {
		*o = ordered(v).(object)
	}
	return err
}

// ordered returns a value of the table in the form of an entry, whose members have an order. A key that ends in "?"
// has once set.
func ordered(v hujson.Value) any {
	switch v := v.Value.(type) {
	case *hujson.Object:
		o := object{}
		for _, m := range v.Members {
			key, once := strings.CutSuffix(m.Name.Value.(hujson.Literal).String(), "?")
			o = append(o, field{key, ordered(m.Value), once})
		}
		return o
	case *hujson.Array:
		list := []string{}
		for _, e := range v.Elements {
			list = append(list, e.Value.(hujson.Literal).String())
		}
		return list
	case hujson.Literal:
		if v.Kind() == '"' {
			return v.String()
		}
		if n, err := strconv.Atoi(string(v)); err == nil {
			return n
		}
		return v.Bool()
	}
	return nil
}

// filled returns a value of the table with its placeholders replaced. {args} in a list stands for all arguments.
func filled(v any, args []string, with *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return with.Replace(v)
	case []string:
		list := []string{}
		for _, s := range v {
			if s == "{args}" {
				list = append(list, args...)
			} else {
				list = append(list, with.Replace(s))
			}
		}
		return list
	case object:
		o := object{}
		for _, f := range v {
			o = append(o, field{f.key, filled(f.value, args, with), f.once})
		}
		return o
	}
	return v
}
