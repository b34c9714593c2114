#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "models/imports/onnx.pb.h"
#include "models/model.pb.h"

namespace sluice::models {

// "float32" of 1.
std::string OnnxTypeName(int type);
// Of its shape; fails where there are too many for a statement to bring.
Result<int64_t> OnnxElements(const onnx::Tensor& tensor);
// Fails where the values are not here, are not as many as the shape says, or of another type.
Status ReadOnnxTensor(const onnx::Tensor& tensor, GraphTensor* to);

}  // namespace sluice::models
