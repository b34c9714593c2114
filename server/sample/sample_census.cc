#include <algorithm>
#include <array>
#include <string_view>

#include "server/sample/sample.h"
#include "server/sample/sample_random.h"

// Rows that resemble UCI Adult: the same columns, the same categories with roughly the same shares,
// dependencies between columns, and an income whose probability is known.
namespace sluice::server {
namespace {

struct Category {
  std::string_view name;
  double cumulative;  // share of rows up to and including this one
  double effect;      // on the log-odds of a high income
};

constexpr std::array<Category, 8> kWorkclass = {{
    {"Private", 0.74, 0.0},
    {"Self-emp-not-inc", 0.82, -0.4},
    {"Local-gov", 0.885, -0.1},
    {"State-gov", 0.925, -0.15},
    {"Self-emp-inc", 0.962, 0.35},
    {"Federal-gov", 0.993, 0.45},
    {"Without-pay", 0.997, -2.0},
    {"Never-worked", 1.0, -3.0},
}};
// For education_num 1 to 16; the effect comes from the number.
constexpr std::array<Category, 16> kEducation = {{
    {"Preschool", 0.002, 0},
    {"1st-4th", 0.007, 0},
    {"5th-6th", 0.017, 0},
    {"7th-8th", 0.037, 0},
    {"9th", 0.053, 0},
    {"10th", 0.082, 0},
    {"11th", 0.118, 0},
    {"12th", 0.131, 0},
    {"HS-grad", 0.454, 0},
    {"Some-college", 0.678, 0},
    {"Assoc-voc", 0.72, 0},
    {"Assoc-acdm", 0.753, 0},
    {"Bachelors", 0.918, 0},
    {"Masters", 0.971, 0},
    {"Prof-school", 0.988, 0},
    {"Doctorate", 1.0, 0},
}};
// Occupations for few years of education, then for many.
constexpr std::array<Category, 14> kOccupationBasic = {{
    {"Craft-repair", 0.17, 0.1},
    {"Other-service", 0.31, -0.9},
    {"Adm-clerical", 0.44, 0.0},
    {"Machine-op-inspct", 0.53, -0.3},
    {"Sales", 0.64, 0.25},
    {"Transport-moving", 0.71, -0.1},
    {"Handlers-cleaners", 0.78, -0.8},
    {"Exec-managerial", 0.87, 0.8},
    {"Farming-fishing", 0.91, -1.0},
    {"Tech-support", 0.94, 0.6},
    {"Protective-serv", 0.965, 0.5},
    {"Prof-specialty", 0.99, 0.6},
    {"Priv-house-serv", 0.998, -2.0},
    {"Armed-Forces", 1.0, -0.2},
}};
constexpr std::array<double, 14> kOccupationLearned = {0.04, 0.07, 0.17, 0.18, 0.31,  0.32,  0.33,
                                                       0.58, 0.59, 0.63, 0.65, 0.998, 0.999, 1.0};
constexpr std::array<Category, 5> kRace = {{
    {"White", 0.854, 0.1},
    {"Black", 0.95, -0.15},
    {"Asian-Pac-Islander", 0.982, 0.05},
    {"Amer-Indian-Eskimo", 0.992, -0.4},
    {"Other", 1.0, -0.3},
}};
constexpr std::array<Category, 20> kCountry = {{
    {"United-States", 0.912, 0.1}, {"Mexico", 0.932, -0.5},    {"Philippines", 0.939, 0.1},
    {"Germany", 0.944, 0.1},       {"Canada", 0.948, 0.1},     {"Puerto-Rico", 0.952, -0.4},
    {"El-Salvador", 0.956, -0.6},  {"India", 0.96, 0.2},       {"Cuba", 0.963, 0.1},
    {"England", 0.966, 0.2},       {"Jamaica", 0.969, -0.1},   {"South", 0.972, -0.4},
    {"China", 0.975, -0.2},        {"Italy", 0.978, 0.3},      {"Dominican-Republic", 0.981, -0.9},
    {"Vietnam", 0.984, -0.6},      {"Guatemala", 0.987, -0.8}, {"Japan", 0.99, 0.2},
    {"Poland", 0.993, 0.0},        {"Columbia", 1.0, -0.9},
}};
enum Marital { kMarried, kNeverMarried, kDivorced, kSeparated, kWidowed, kSpouseAbsent };
constexpr std::array<std::string_view, 6> kMaritalNames = {
    "Married-civ-spouse", "Never-married", "Divorced",
    "Separated",          "Widowed",       "Married-spouse-absent"};

constexpr double kIncomeIntercept = -3.35;  // about a quarter of the rows earn more than 50K

template <size_t n>
size_t Pick(const std::array<Category, n>& categories, RowRandom& random) {
  const double u = random.Uniform();
  size_t i = 0;
  while (i + 1 < n && u >= categories[i].cumulative) {
    ++i;
  }
  return i;
}

Marital PickMarital(double age, RowRandom& random) {
  const double never = age < 22 ? 0.93 : age < 30 ? 0.55 : age < 40 ? 0.2 : 0.09;
  if (random.Chance(never)) {
    return kNeverMarried;
  }
  const double widowed = age > 60 ? 0.2 : 0.015;
  const double u = random.Uniform();
  if (u < widowed) {
    return kWidowed;
  }
  return u < widowed + 0.18   ? kDivorced
         : u < widowed + 0.22 ? kSeparated
         : u < widowed + 0.24 ? kSpouseAbsent
                              : kMarried;
}

std::string_view PickRelationship(Marital marital, bool male, double age, RowRandom& random) {
  if (marital == kMarried) {
    return random.Chance(0.93) ? (male ? "Husband" : "Wife") : "Other-relative";
  }
  if (marital == kNeverMarried && random.Chance(age < 25 ? 0.75 : 0.2)) {
    return "Own-child";
  }
  const double u = random.Uniform();
  return u < 0.55 ? "Not-in-family" : u < 0.93 ? "Unmarried" : "Other-relative";
}

// One person. The log-odds of a high income are additive except for two interactions: a degree
// counts for more when married, and age helps up to about fifty.
struct Person {
  int64_t age, fnlwgt, education_num, capital_gain = 0, capital_loss = 0, hours;
  size_t workclass, occupation, race, country;
  Marital marital;
  std::string_view relationship;
  bool male, job_known, country_known, high_income;
  double probability;

  Person(uint64_t seed, int64_t row) {
    RowRandom random(seed, row);
    // Two generations: many young people, and a middle-aged group with a wide spread.
    const double years =
        random.Chance(0.35) ? 17 + 11 * random.Uniform() : 42 + 13 * random.Normal();
    age = static_cast<int64_t>(std::clamp(years, 17.0, 90.0));
    fnlwgt = static_cast<int64_t>(std::exp(12.0 + 0.55 * random.Normal()));
    education_num = static_cast<int64_t>(Pick(kEducation, random)) + 1;
    male = random.Chance(0.67);
    marital = PickMarital(static_cast<double>(age), random);
    relationship = PickRelationship(marital, male, static_cast<double>(age), random);
    workclass = Pick(kWorkclass, random);
    occupation =
        education_num >= 13 ? random.Pick(kOccupationLearned) : Pick(kOccupationBasic, random);
    race = Pick(kRace, random);
    country = Pick(kCountry, random);
    hours = random.Chance(0.47)
                ? 40
                : static_cast<int64_t>(std::clamp(41 + 12 * random.Normal(), 1.0, 99.0));
    job_known = !random.Chance(0.056);
    country_known = !random.Chance(0.018);
    const double hidden = 0.4 * random.Normal();  // what no column reveals
    PickCapital(random);
    const double log_odds = LogOdds() + hidden;
    probability = Sigmoid(log_odds);
    high_income = random.Chance(probability);
  }

  void PickCapital(RowRandom& random) {
    if (random.Chance(0.04 + 0.004 * static_cast<double>(education_num))) {
      capital_gain = static_cast<int64_t>(std::exp(8.4 + 1.0 * random.Normal()));
      capital_gain = std::min<int64_t>(capital_gain, 99'999);
    } else if (random.Chance(0.047)) {
      capital_loss = static_cast<int64_t>(1'870 + 340 * random.Normal());
    }
  }

  double LogOdds() const {
    const double degree = static_cast<double>(education_num) - 9.0;
    const double prime = 1.0 - std::min(std::abs(static_cast<double>(age) - 49.0) / 16.0, 2.4);
    const bool married = marital == kMarried;
    double sum = kIncomeIntercept + 0.33 * degree + 0.9 * prime;
    sum += married ? 1.9 + 0.09 * degree : -0.5;
    sum += relationship == "Wife" ? 0.5 : relationship == "Own-child" ? -0.9 : 0.0;
    sum += male ? 0.25 : -0.1;
    sum += 0.032 * (static_cast<double>(hours) - 40.0);
    if (job_known) {  // an unknown job lowers the odds
      sum += kWorkclass[workclass].effect + kOccupationBasic[occupation].effect;
    } else {
      sum -= 0.8;
    }
    sum += kRace[race].effect + (country_known ? kCountry[country].effect : 0.0);
    sum += capital_gain > 5'000 ? 3.0 : capital_gain > 0 ? -0.6 : 0.0;
    sum += capital_loss > 1'800 ? 1.3 : capital_loss > 0 ? -0.8 : 0.0;
    return sum;
  }
};

class CensusSample final : public SampleGenerator {
 public:
  explicit CensusSample(uint64_t seed) : seed_(seed) {
    for (const char* name :
         {"age", "workclass", "fnlwgt", "education", "education_num", "marital_status",
          "occupation", "relationship", "race", "sex", "capital_gain", "capital_loss",
          "hours_per_week", "native_country", "income"}) {
      const std::string_view column(name);
      const bool number = column == "age" || column == "fnlwgt" || column == "education_num" ||
                          column == "capital_gain" || column == "capital_loss" ||
                          column == "hours_per_week";
      schema_.columns.push_back(
          {name, number ? DataType::kInt64 : DataType::kText, number ? "integer" : "text"});
    }
  }

  const Schema& schema() const override { return schema_; }

  void Fill(int64_t first, size_t rows, RowBatch* batch,
            std::vector<double>* probabilities) const override {
    batch->Reset(schema_, rows);
    batch->rows = rows;
    probabilities->resize(rows);
    for (size_t r = 0; r < rows; ++r) {
      const Person person(seed_, first + static_cast<int64_t>(r));
      (*probabilities)[r] = person.probability;
      PutRow(person, r, batch);
    }
  }

 private:
  static void PutRow(const Person& person, size_t r, RowBatch* batch) {
    size_t c = 0;
    const auto number = [&](int64_t value) {
      RowBatch::Column& column = batch->columns[c++];
      column.null[r] = 0;
      column.int64s[r] = value;
    };
    const auto text = [&](std::string_view value, bool known = true) {
      RowBatch::Column& column = batch->columns[c++];
      column.null[r] = known ? 0 : 1;
      column.texts[r] = value;
    };
    number(person.age);
    text(kWorkclass[person.workclass].name, person.job_known);
    number(person.fnlwgt);
    text(kEducation[static_cast<size_t>(person.education_num) - 1].name);
    number(person.education_num);
    text(kMaritalNames[person.marital]);
    text(kOccupationBasic[person.occupation].name, person.job_known);
    text(person.relationship);
    text(kRace[person.race].name);
    text(person.male ? "Male" : "Female");
    number(person.capital_gain);
    number(person.capital_loss);
    number(person.hours);
    text(kCountry[person.country].name, person.country_known);
    text(person.high_income ? ">50K" : "<=50K");
  }

  const uint64_t seed_;
  Schema schema_;
};

}  // namespace

std::unique_ptr<SampleGenerator> MakeCensusSample(uint64_t seed) {
  return std::make_unique<CensusSample>(seed);
}

}  // namespace sluice::server
