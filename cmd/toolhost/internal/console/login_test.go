package console

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func with(c *http.Cookie) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.AddCookie(c)
	return r
}

func TestDoorkeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept []string
		d := newSessionStore("one", func(code string) { kept = append(kept, code) })
		for _, wrong := range []string{"", "x", kept[0] + "x", kept[0][:len(kept[0])-1]} {
			if _, err := d.login(wrong); err == nil {
				t.Errorf("the code %q was taken", wrong)
			}
		}
		cookie, err := d.login(kept[0])
		if err != nil {
			t.Fatal(err)
		}
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Name != "toolhost-one" ||
			cookie.Domain != "" {
			t.Errorf("the cookie is %v", cookie)
		}
		if _, err := d.login(kept[0]); err == nil {
			t.Error("the code worked twice")
		}
		if len(kept) != 2 || kept[0] == kept[1] || len(kept[1]) < 26 {
			t.Errorf("the codes are %q", kept)
		}
		if _, ok := d.session(with(cookie)); !ok {
			t.Error("who entered is not known")
		}
		for name, wrong := range map[string]*http.Cookie{
			"another value": {Name: cookie.Name, Value: cookie.Value + "x"}, "another console": {Name: "toolhost-two", Value: cookie.Value},
			"no value": {Name: cookie.Name},
		} {
			if _, ok := d.session(with(wrong)); ok {
				t.Errorf("%s was let in", name)
			}
		}
		time.Sleep(SessionAge + time.Second)
		if _, ok := d.session(with(cookie)); ok {
			t.Error("a session outlived its age")
		}
	})
}

func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := ""
		d := newSessionStore("one", func(c string) { code = c })
		var all []*http.Cookie
		for range maxSessions + 1 {
			cookie, err := d.login(code)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, cookie)
			time.Sleep(time.Second)
		}
		for i, cookie := range all {
			if _, ok := d.session(with(cookie)); ok != (i > 0) {
				t.Errorf("session %d is known: %v", i, ok)
			}
		}
		d.logout(with(all[1]))
		if _, ok := d.session(with(all[1])); ok {
			t.Error("who has left is still known")
		}
	})
}
