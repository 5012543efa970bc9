// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

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

// UnmarshalJSON implements json.Unmarshaler and leaves out what it cannot read. The API server stores times that no client reads, such as
// one with the zone +99:00, and anyone who may write the status may send one. An error would make the whole list unreadable.
func (s *MCPServerStatus) UnmarshalJSON(data []byte) error {
	type plain MCPServerStatus
	decodeStatus(data, (*plain)(s))
	return nil
}

// UnmarshalJSON implements json.Unmarshaler; see MCPServerStatus.
func (s *ConfigStatus) UnmarshalJSON(data []byte) error {
	type plain ConfigStatus
	decodeStatus(data, (*plain)(s))
	return nil
}

// UnmarshalJSON implements json.Unmarshaler; see MCPServerStatus.
func (s *MCPGroupStatus) UnmarshalJSON(data []byte) error {
	type plain MCPGroupStatus
	decodeStatus(data, (*plain)(s))
	return nil
}

// decodeStatus reads a status, given as a type without the method UnmarshalJSON. Conditions whose time cannot be read have none, and other
// values of the wrong type are zero. JSON null changes nothing, as encoding/json requires.
func decodeStatus[T any](data []byte, into *T) {
	if bytes.Equal(data, []byte("null")) {
		return
	}
	*into = *new(T)
	if kjson.UnmarshalCaseSensitivePreserveInts(data, into) == nil {
		return
	}
	var values map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &values); err != nil {
		return
	}
	conditions, _ := values["conditions"].([]any)
	for _, each := range conditions {
		condition, ok := each.(map[string]any)
		if !ok {
			continue
		}
		text, _ := condition["lastTransitionTime"].(string)
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			delete(condition, "lastTransitionTime")
		}
	}
	readable, err := json.Marshal(values)
	if err != nil {
		return // What was decoded can be encoded.
	}
	*into = *new(T)
	// A value of the wrong type is an error, and all others are read.
	_ = kjson.UnmarshalCaseSensitivePreserveInts(readable, into)
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
