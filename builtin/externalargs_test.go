package builtin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// externalSchema has members of many kinds, as generators of schemas write them.
const externalSchema = `{"type":"object","required":["need"],"properties":{
	"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},"z":{"type":"null"},
	"l":{"type":"array","items":{"type":"string"}},"li":{"type":"array","items":{"type":"integer"}},
	"ll":{"type":"array","items":{"type":"array","items":{"type":"number"}}},
	"o":{"type":"object","properties":{"x":{"type":"integer"},"s":{"type":"string"},"b":{"type":"boolean"}},"required":["s"]},
	"m":{"type":"object","additionalProperties":{"type":"integer"}},
	"need":{"type":"integer"},
	"ni":{"anyOf":[{"type":"integer"},{"type":"null"}]},"nl":{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"null"}]},
	"ns":{"anyOf":[{"type":"string"},{"type":"null"}]},"si":{"oneOf":[{"type":"integer"},{"type":"string"}]},
	"ti":{"type":["integer","null"]},"ts":{"type":["array","string"]},
	"ei":{"enum":[1,2]},"es":{"enum":["1","2"]},"c":{"const":5},
	"any":{},"all":true,"none":{"description":"of any type"},"some":{"anyOf":[{"type":"integer"},{}]},
	"r":{"$ref":"#/$defs/Point"},"nr":{"anyOf":[{"$ref":"#/$defs/Point"},{"type":"null"}]},"lr":{"type":"array","items":{"$ref":"#/$defs/Point"}},
	"ri":{"$ref":"#/properties/i"},"rp":{"$ref":"#/$defs/a~1b%20c"},"rx":{"$ref":"#/$defs/none"},"ra":{"$ref":"#anchor"},"loop":{"$ref":"#/properties/loop"},
	"t":{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}]},"t4":{"type":"array","items":[{"type":"boolean"}]},
	"k":{"allOf":[{"$ref":"#/properties/i"}],"default":7},"ko":{"type":"object","anyOf":[{"required":["x"]},{"required":["y"]}],"properties":{"x":{"type":"integer"}}},
	"u":{"anyOf":[{"type":"object","properties":{"kind":{"const":"a"},"v":{"type":"integer"}}},{"type":"object","properties":{"kind":{"const":"b"},"v":{"type":"string"},"w":{"type":"boolean"}}}]}
},"$defs":{"Point":{"type":"object","properties":{"x":{"type":"integer"},"next":{"$ref":"#/$defs/Point"}}},"a/b c":{"type":"boolean"}}}`

// TestExternalArguments converts arguments as models send them to the schema of another server.
func TestExternalArguments(t *testing.T) {
	tests := []struct{ given, want string }{ // want "": unchanged
		// Text that spells a value of the type.
		{`{"i":"5"}`, `{"i":5}`},
		{`{"i":" -5 "}`, `{"i":-5}`},
		{`{"i":"5.0"}`, `{"i":5}`},
		{`{"i":"007"}`, `{"i":7}`},
		{`{"i":"123456789012345678901"}`, `{"i":123456789012345678901}`},
		{`{"i":9007199254740993}`, ``},
		{`{"i":5.0}`, `{"i":5}`},
		{`{"n":5.0}`, ``},
		{`{"n":"5.50"}`, `{"n":5.50}`},
		{`{"n":"1e3"}`, `{"n":1e3}`},
		{`{"b":"true"}`, `{"b":true}`},
		{`{"b":"False"}`, `{"b":false}`},
		{`{"l":"[\"a\",\"b\"]"}`, `{"l":["a","b"]}`},
		{`{"l":["1","true"]}`, ``},
		{`{"l":"[\"1\",\"[2]\"]"}`, `{"l":["1","[2]"]}`},
		{`{"li":["1","2"]}`, `{"li":[1,2]}`},
		{`{"li":"[\"1\",2]"}`, `{"li":[1,2]}`},
		{`{"ll":["[1,\"2\"]",[3]]}`, `{"ll":[[1,2],[3]]}`},
		{`{"o":"{\"x\":\"1\",\"s\":\"2\"}"}`, `{"o":{"s":"2","x":1}}`},
		{`{"o":{"x":"1","s":"{}","b":"true","other":"1"}}`, `{"o":{"b":true,"other":"1","s":"{}","x":1}}`},
		{`{"m":{"a":"1","b":2}}`, `{"m":{"a":1,"b":2}}`},
		{`{"z":"null"}`, `{"z":null}`},
		// Never where the schema permits text, or does not say.
		{`{"s":"5"}`, ``},
		{`{"s":"true"}`, ``},
		{`{"s":"[1]"}`, ``},
		{`{"s":"{\"a\":1}"}`, ``},
		{`{"s":"null"}`, ``},
		{`{"ns":"5"}`, ``},
		{`{"si":"5"}`, ``},
		{`{"ts":"[1]"}`, ``},
		{`{"es":"1"}`, ``},
		{`{"any":"5"}`, ``},
		{`{"all":"5"}`, ``},
		{`{"none":"5"}`, ``},
		{`{"some":"5"}`, ``},
		{`{"unknown":"5"}`, ``},
		{`{"rx":"5"}`, ``},
		{`{"ra":"5"}`, ``},
		{`{"loop":"5"}`, ``},
		// Text that spells no such value is left for the check.
		{`{"i":"five"}`, ``},
		{`{"i":""}`, ``},
		{`{"i":"1.5"}`, ``},
		{`{"i":"inf"}`, ``},
		{`{"n":"NaN"}`, ``},
		{`{"n":"0x10"}`, ``},
		{`{"n":"1,000"}`, ``},
		{`{"b":"yes"}`, ``},
		{`{"l":"a"}`, ``},
		{`{"l":"['a']"}`, ``},
		{`{"l":"{}"}`, ``},
		{`{"l":"[1"}`, ``},
		{`{"o":"[]"}`, ``},
		{`{"o":"{} {}"}`, ``},
		{`{"s":5}`, ``},
		// Combined types.
		{`{"ni":"5"}`, `{"ni":5}`},
		{`{"ni":"null"}`, `{"ni":null}`},
		{`{"ni":null}`, ``},
		{`{"nl":"[\"1\"]"}`, `{"nl":[1]}`},
		{`{"ti":"5"}`, `{"ti":5}`},
		{`{"ei":"2"}`, `{"ei":2}`},
		{`{"c":"5"}`, `{"c":5}`},
		{`{"k":"5"}`, `{"k":5}`},
		{`{"ko":"{\"x\":\"1\"}"}`, `{"ko":{"x":1}}`},
		{`{"t":"[\"1\",\"2\",\"3\"]"}`, `{"t":[1,"2","3"]}`},
		{`{"t4":["true","true"]}`, `{"t4":[true,"true"]}`},
		{`{"u":{"kind":"b","v":"5","w":"true"}}`, `{"u":{"kind":"b","v":"5","w":true}}`},
		// References.
		{`{"r":"{\"x\":\"1\",\"next\":{\"next\":\"{\\\"x\\\":\\\"2\\\"}\"}}"}`, `{"r":{"next":{"next":{"x":2}},"x":1}}`},
		{`{"nr":"{\"x\":\"1\"}"}`, `{"nr":{"x":1}}`},
		{`{"lr":"[{\"x\":\"1\"}]"}`, `{"lr":[{"x":1}]}`},
		{`{"ri":"5"}`, `{"ri":5}`},
		{`{"rp":"true"}`, `{"rp":true}`},
		// Null for what is not given.
		{`{"i":null,"s":null,"need":null}`, `{"need":null}`},
		{`{"o":{"x":null,"s":null}}`, `{"o":{"s":null}}`},
		{`{"any":null}`, ``},
		{`{"unknown":null}`, ``},
		// A member given twice in a text: rules see what the server gets.
		{`{"o":"{\"s\":\"a\",\"s\":\"b\"}"}`, `{"o":{"s":"b"}}`},
	}
	d := External(Def{Name: "mcp__s__t", Server: "s", RawSchema: json.RawMessage(externalSchema)}, false, nil)
	for _, tt := range tests {
		if tt.want == "" {
			tt.want = tt.given
		}
		call, err := d.Bind(json.RawMessage(tt.given))
		if err != nil {
			t.Errorf("%s: %v", tt.given, err)
			continue
		}
		got, _ := call.Input()
		if rules, _ := json.Marshal(call.Args); string(got) != tt.want || string(rules) != tt.want {
			t.Errorf("%s: the tool gets %s and rules %s, want %s", tt.given, got, rules, tt.want)
		}
	}
}

// TestHostileSchemas: the work of a conversion is bounded, and what is odd in a schema has no effect.
func TestHostileSchemas(t *testing.T) {
	wide := `{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 60 {
		wide += fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%[2]d"}]},`, i, i+1)
	}
	for _, schema := range []string{
		wide + `"d60":{"type":"integer"}}}`,
		`{"properties":{"a":{"anyOf":[{"$ref":"#/properties/a"},{"$ref":"#/properties/a"}]}}}`,
		`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`,
		`{"properties":7}`, `{"properties":{"a":7}}`, `{"properties":{"a":{"type":7,"anyOf":{}}}}`, `{"properties":{"a":{"type":["",null]}}}`,
		`{"properties":{"a":{"$ref":"#/properties/a/type/0"}}}`, `{"properties":{"a":{"$ref":"#/%zz"}}}`, `[]`, `7`, ``, `{`,
	} {
		d := External(Def{Name: "mcp__s__t", Server: "s", RawSchema: json.RawMessage(schema)}, false, nil)
		args := `{"a":"[` + strings.TrimSuffix(strings.Repeat("1,", 100_000), ",") + `]"}`
		call, err := d.Bind(json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := call.Input(); string(got) != args {
			t.Errorf("%.60s: got %.60s", schema, got)
		}
	}
}
