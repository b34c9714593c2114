#pragma once

#include <xgboost/c_api.h>

#include "base/status.h"

namespace sluice::models {

// libxgboost's functions by their own names. The library is loaded when the first tree is trained
// or applied, not with the program: it costs every process 4 ms to start, and OpenMP's runtime,
// which comes with it, reads its environment when it is loaded (see UsePassiveWaiting).
struct XgboostLibrary {
#define SLUICE_EACH_XGBOOST_FUNCTION(FUNCTION) \
  FUNCTION(XGBGetLastError)                    \
  FUNCTION(XGBRegisterLogCallback)             \
  FUNCTION(XGBoostVersion)                     \
  FUNCTION(XGBoosterBoostedRounds)             \
  FUNCTION(XGBoosterCreate)                    \
  FUNCTION(XGBoosterEvalOneIter)               \
  FUNCTION(XGBoosterFeatureScore)              \
  FUNCTION(XGBoosterFree)                      \
  FUNCTION(XGBoosterGetNumFeature)             \
  FUNCTION(XGBoosterLoadModelFromBuffer)       \
  FUNCTION(XGBoosterPredictFromCSR)            \
  FUNCTION(XGBoosterPredictFromDMatrix)        \
  FUNCTION(XGBoosterPredictFromDense)          \
  FUNCTION(XGBoosterSaveModelToBuffer)         \
  FUNCTION(XGBoosterSetParam)                  \
  FUNCTION(XGBoosterSlice)                     \
  FUNCTION(XGBoosterUpdateOneIter)             \
  FUNCTION(XGDMatrixCreateFromCSR)             \
  FUNCTION(XGDMatrixCreateFromDense)           \
  FUNCTION(XGDMatrixFree)                      \
  FUNCTION(XGDMatrixNumRow)                    \
  FUNCTION(XGDMatrixSetFloatInfo)              \
  FUNCTION(XGDMatrixSetInfoFromInterface)      \
  FUNCTION(XGDMatrixSetUIntInfo)               \
  FUNCTION(XGProxyDMatrixCreate)               \
  FUNCTION(XGProxyDMatrixSetDataCSR)           \
  FUNCTION(XGProxyDMatrixSetDataDense)         \
  FUNCTION(XGQuantileDMatrixCreateFromCallback)

#define SLUICE_DECLARE(name) decltype(&::name) name = nullptr;
  SLUICE_EACH_XGBOOST_FUNCTION(SLUICE_DECLARE)
#undef SLUICE_DECLARE
};

// Loads the library, unless it is there. FailedPrecondition (58P01): it is not installed, or too
// old; a later call tries again. Thread-safe.
Status LoadXgboost();
// After LoadXgboost has returned OK.
const XgboostLibrary& Xgboost();

}  // namespace sluice::models
