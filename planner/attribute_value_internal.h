#pragma once

#include <optional>

#include "planner/attributes.h"

// One attribute's value, typed as its AttributeSpec asks.
namespace sluice::planner {

// Whether the value is null, or None as in Python, and not one of the choices (split.kind = none).
bool MeansNothing(const parser::AttributeValue& value, const models::AttributeSpec& spec);

// An error at the value's place if it has another type, is out of range, or is none of the choices.
Result<TypedValue> ReadValue(const models::AttributeSpec& spec,
                             const parser::AttributeValue& value);

std::optional<TypedValue> DefaultOf(const models::AttributeSpec& spec);

}  // namespace sluice::planner
