// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// The server speaks JSON. For clients that want built-in kinds as protobuf, what they send and get is translated.
var (
	jsons     = jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{})
	protobufs = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	raw       = protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme)
)

// wantsProtobuf reports whether a client prefers protobuf, for a kind that has it.
func wantsProtobuf(from *http.Request, k *Kind) bool {
	return k != nil && scheme.Scheme.Recognizes(k.GroupVersionKind) && strings.HasPrefix(from.Header.Get("Accept"), runtime.ContentTypeProtobuf)
}

// fromProtobuf returns the JSON of a body.
func fromProtobuf(body []byte) ([]byte, error) {
	obj, gvk, err := protobufs.Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj.GetObjectKind().SetGroupVersionKind(*gvk)
	return encode(obj), nil
}

// inProtobuf returns an answer in protobuf.
func inProtobuf(answer Answer) Answer {
	if answer.Watch != nil {
		answer.Watch.protobuf = true
		answer.Header = http.Header{"Content-Type": {runtime.ContentTypeProtobuf + ";stream=watch"}}
		return answer
	}
	if answer.Header == nil {
		answer.Header = http.Header{}
	}
	answer.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
	answer.Body = toProtobuf(answer.Body)
	return answer
}

// toProtobuf translates an object of the server.
func toProtobuf(body []byte) []byte {
	obj, _, err := jsons.Decode(body, nil, nil)
	if err != nil {
		panic(err) // the server has encoded it
	}
	return marshalled(protobufs, obj)
}

// frameToProtobuf translates an event of a watch. Its length is in front of it.
func frameToProtobuf(frame []byte) []byte {
	var event struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(frame, &event); err != nil {
		panic(err) // the server has encoded it
	}
	body := marshalled(raw, &metav1.WatchEvent{Type: event.Type, Object: runtime.RawExtension{Raw: toProtobuf(event.Object)}})
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func marshalled(by runtime.Encoder, obj runtime.Object) []byte {
	var buffer bytes.Buffer
	if err := by.Encode(obj, &buffer); err != nil {
		panic(err) // built-in kinds have protobuf
	}
	return buffer.Bytes()
}
