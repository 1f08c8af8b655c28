package netstack

import (
	"context"
	"fmt"
	"net"

	"golang.org/x/net/dns/dnsmessage"
)

// maxText is the length of the longest string of a TXT record.
const maxText = 255

// Records looks up records with the resolver of this machine. It is a [Config].Records.
func Records(ctx context.Context, name string, kind dnsmessage.Type) (list []dnsmessage.ResourceBody, err error) {
	name += "." // no search list
	switch kind {
	case dnsmessage.TypeTXT:
		texts, err := net.DefaultResolver.LookupTXT(ctx, name)
		for _, text := range texts {
			list = append(list, textRecord(text))
		}
		return list, err
	case dnsmessage.TypeMX:
		all, err := net.DefaultResolver.LookupMX(ctx, name)
		for _, mx := range all {
			if host, err := dnsmessage.NewName(mx.Host); err == nil {
				list = append(list, &dnsmessage.MXResource{Pref: mx.Pref, MX: host})
			}
		}
		return list, err
	case dnsmessage.TypeSRV:
		_, all, err := net.DefaultResolver.LookupSRV(ctx, "", "", name)
		for _, srv := range all {
			if host, err := dnsmessage.NewName(srv.Target); err == nil {
				list = append(list, &dnsmessage.SRVResource{Priority: srv.Priority, Weight: srv.Weight, Port: srv.Port,
					Target: host})
			}
		}
		return list, err
	}
	return nil, fmt.Errorf("records of type %s are not looked up", kind)
}

// textRecord returns a text as a record.
func textRecord(text string) *dnsmessage.TXTResource {
	r := &dnsmessage.TXTResource{}
	for len(text) > maxText {
		r.TXT, text = append(r.TXT, text[:maxText]), text[maxText:]
	}
	r.TXT = append(r.TXT, text)
	return r
}
