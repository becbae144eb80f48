// SPDX-License-Identifier: Apache-2.0
#include "dcgan/options.h"

#include "folders.h"
#include "temp_folder.h"

#include <sstream>

namespace ullage::dcgan {
namespace {

std::variant<Options, Answer> parse(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words{"ullage-dcgan"};
  for (std::string word; in >> word;) words.push_back(word);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

// option_errors.txt: "$ arguments", then what is said.
TEST(Options, AreRefusedInTheseWords) {
  std::istringstream golden(test::read_file(tests_folder() / "dcgan/option_errors.txt"));
  int cases = 0;
  for (std::string line, said; std::getline(golden, line) && std::getline(golden, said); ++cases) {
    const auto parsed = parse(line.substr(2));
    const auto* answer = std::get_if<Answer>(&parsed);
    ASSERT_NE(answer, nullptr) << line;
    EXPECT_EQ(answer->text, said + "\n") << line;
    EXPECT_EQ(answer->code, ExitCode::WrongUse) << line;
  }
  EXPECT_GT(cases, 20);
}

TEST(Options, HelpIsAsStated) {
  const auto parsed = parse("--help");
  EXPECT_EQ(std::get<Answer>(parsed).code, ExitCode::Done);
  EXPECT_EQ(std::get<Answer>(parsed).text, test::read_file(tests_folder() / "dcgan/help.txt"));
}

TEST(Options, HaveTheDefaultsOfTheContract) {
  const auto parsed = parse("--data d --out o");
  const auto& o = std::get<Options>(parsed);
  EXPECT_EQ(options_as_json(o),
            R"({"data":"d","out":"o","image_size":256,"batch":64,"steps":null,"epochs":25,"nz":100,"ngf":64,"ndf":64,)"
            R"("max_channels":null,"lr":0.0002,"beta1":0.5,"beta2":0.999,"seed":1,"threads":null,"sample_every":100,)"
            R"("checkpoint_every":500,"resume":false,"skip_bad":false})");
}

TEST(Options, StepsTakeThePlaceOfEpochs) {
  const auto parsed = parse("--data d --out o --steps 7 --batch 1 --image-size 16");
  EXPECT_EQ(std::get<Options>(parsed).steps, 7);
  EXPECT_EQ(std::get<Options>(parsed).epochs, 0);
}

}  // namespace
}  // namespace ullage::dcgan
