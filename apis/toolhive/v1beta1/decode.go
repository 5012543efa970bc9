// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// UnmarshalJSON implements json.Unmarshaler and records unknown fields and malformed values instead of dropping or refusing
// them. The CRD in a cluster may be newer than this type, and an unknown field could be the one that protects the server. An
// error for a value of another type would make the whole list unreadable, and with it every other MCPServer.
func (s *MCPServerSpec) UnmarshalJSON(data []byte) error {
	type plain MCPServerSpec // without this method
	decode(data, (*plain)(s), &s.UnknownFields, &s.Malformed)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler; see MCPServerSpec.
func (s *MCPOIDCConfigSpec) UnmarshalJSON(data []byte) error {
	type plain MCPOIDCConfigSpec
	decode(data, (*plain)(s), &s.UnknownFields, &s.Malformed)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler; see MCPServerSpec.
func (s *MCPAuthzConfigSpec) UnmarshalJSON(data []byte) error {
	type plain MCPAuthzConfigSpec
	decode(data, (*plain)(s), &s.UnknownFields, &s.Malformed)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler; see MCPServerSpec.
func (s *MCPExternalAuthConfigSpec) UnmarshalJSON(data []byte) error {
	type plain MCPExternalAuthConfigSpec
	decode(data, (*plain)(s), &s.UnknownFields, &s.Malformed)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler; see MCPServerSpec.
func (s *MCPToolConfigSpec) UnmarshalJSON(data []byte) error {
	type plain MCPToolConfigSpec
	decode(data, (*plain)(s), &s.UnknownFields, &s.Malformed)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler; see MCPServerSpec.
func (s *MCPTelemetryConfigSpec) UnmarshalJSON(data []byte) error {
	type plain MCPTelemetryConfigSpec
	decode(data, (*plain)(s), &s.UnknownFields, &s.Malformed)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler; see MCPServerSpec.
func (s *MCPWebhookConfigSpec) UnmarshalJSON(data []byte) error {
	type plain MCPWebhookConfigSpec
	decode(data, (*plain)(s), &s.UnknownFields, &s.Malformed)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler; see MCPServerSpec.
func (s *MCPGroupSpec) UnmarshalJSON(data []byte) error {
	type plain MCPGroupSpec
	decode(data, (*plain)(s), &s.UnknownFields, &s.Malformed)
	return nil
}

// decode reads a spec, given as a type without the method UnmarshalJSON, and records what it cannot read. JSON null changes
// nothing, as encoding/json requires.
func decode(data []byte, spec any, unknown *[]string, malformed *string) {
	if bytes.Equal(data, []byte("null")) {
		return
	}
	*unknown, *malformed = nil, ""
	strict, err := kjson.UnmarshalStrict(data, spec)
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mismatch.Field != "" {
		*malformed = fmt.Sprintf("%s is of type %s, not %s", mismatch.Field, mismatch.Value, mismatch.Type)
	} else if err != nil {
		*malformed = err.Error()
	}
	for _, problem := range strict {
		if field, ok := errors.AsType[kjson.FieldError](problem); ok {
			*unknown = append(*unknown, field.FieldPath())
		}
	}
}
