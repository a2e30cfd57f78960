mod examples;
mod llm;
mod oracle;
mod properties;
