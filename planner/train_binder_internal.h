#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/bind_train_internal.h"
#include "planner/error_list.h"

// Only bind_train*.cc include this.
namespace sluice::planner {

// Binds one statement step by step; a step is skipped if what it depends on is missing, so that
// each mistake is reported once.
class TrainBinder {
 public:
  TrainBinder(const parser::TrainStatement& statement, catalog::DataSource& source,
              catalog::ModelStore& models, const Options& options, const BoundTrain* known)
      : statement_(statement),
        source_(source),
        models_(models),
        types_(options.model_types),
        classes_of_sample_(options.classes_of_sample),
        known_(known) {}

  Result<BoundTrain> Bind();

 private:
  void BindInto();
  void BindBase();
  void BindType();
  // For a type that is not built in; false: there is none of that name.
  bool FindUserType();
  void UnknownType();
  // When the label is known: a user type accepts both classes and numbers.
  void MakeUserType();
  void SimplifyForUserType();
  void ShowIds();
  void BindLabel();
  void BindStatistics();
  void ChooseType();
  void BindAttributes();
  void BindColumns();
  void BindRoles();
  void BindFeatureLists();
  void BindValidation();
  void Derive();
  void DeriveFromBase();
  Status CheckWeights();
  void BindExposure();
  void BindDecision();
  void WarnOfLeaks();

  bool HoldsNumbers(size_t column) const;
  Status FindRole(const std::string& attribute, const std::string& role, bool numeric,
                  std::string* column);
  LabelUse UseOf(models::ModelTask task) const;
  LabelUse UseOfNumber() const;
  Status BindLabelPlan();
  Status FindClasses(LabelInput* input, models::LabelPlan* label);
  bool ReadsAllRowsHere() const;

  const parser::TrainStatement& statement_;
  catalog::DataSource& source_;
  catalog::ModelStore& models_;
  catalog::ModelStore* types_;
  const bool classes_of_sample_;
  const BoundTrain* known_;  // with the same select and label; null: none
  ErrorList errors_;
  BoundTrain bound_;
  bool has_select_ = false;
  bool has_statistics_ = false;
  std::optional<size_t> label_;
  std::vector<RequestedColumn> requested_;
  bool only_requested_ = false;
  std::vector<std::string> excluded_;
  std::vector<std::string> left_out_;  // per column, from features.*
};

}  // namespace sluice::planner
