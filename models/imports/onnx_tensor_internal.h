#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "models/imports/onnx.pb.h"
#include "models/model.pb.h"

namespace sluice::models {

// 1 is "float32".
std::string OnnxTypeName(int type);
// The number of elements of its shape; fails if there are too many for a statement.
Result<int64_t> OnnxElements(const onnx::Tensor& tensor);
// Fails if the values are external, or do not have the number or the type of the shape.
Status ReadOnnxTensor(const onnx::Tensor& tensor, GraphTensor* to);

}  // namespace sluice::models
