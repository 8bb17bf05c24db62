import tseslint from "typescript-eslint";

export default tseslint.config(...tseslint.configs.strictTypeChecked, {
  languageOptions: { parserOptions: { projectService: true } },
  rules: {
    eqeqeq: "error",
    "no-eval": "error",
    "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true }],
    "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    "@typescript-eslint/no-unsafe-class-instance-assignment": "off", // VS Code makes its disposables without their class
  },
});
