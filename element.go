package hccl

import (
	"reflect"

	"hccl.dev/hccl/internal/coll"
)

// Element is a number, or a truth value, that operations move and combine. A type that is declared from one of these counts as it, save
// one declared from a narrow float, which is taken for a uint16 or uint8: those have only their own names. int and uint go over the wire
// as 64 bits. A sum of bools is their or, a product their and; they have no mean.
type Element interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~int | ~uint | ~float32 | ~float64 | ~bool
}

// It does not compile where int has 32 bits: there int would need a type of its own.
const _ uint = 1 << 63

// typeOf is the element type that T stands for on the wire. The switch costs a comparison or two; reflection is for declared types.
func typeOf[T Element]() coll.DataType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return coll.Float32
	case float64:
		return coll.Float64
	case Float16:
		return coll.Float16
	case Bfloat16:
		return coll.Bfloat16
	case Float8E4M3:
		return coll.Float8e4m3
	case Float8E5M2:
		return coll.Float8e5m2
	case uint8:
		return coll.Uint8
	case int64, int:
		return coll.Int64
	}
	return typeOfKind(reflect.TypeFor[T]().Kind())
}

func typeOfKind(k reflect.Kind) coll.DataType {
	switch k {
	case reflect.Int8:
		return coll.Int8
	case reflect.Uint8:
		return coll.Uint8
	case reflect.Int16:
		return coll.Int16
	case reflect.Uint16:
		return coll.Uint16
	case reflect.Bool:
		return coll.Bool
	case reflect.Int32:
		return coll.Int32
	case reflect.Uint32:
		return coll.Uint32
	case reflect.Uint64, reflect.Uint:
		return coll.Uint64
	case reflect.Float32:
		return coll.Float32
	case reflect.Float64:
		return coll.Float64
	}
	return coll.Int64
}
