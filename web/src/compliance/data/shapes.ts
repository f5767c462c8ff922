/** What the REST API answers, as far as the page shows it. */

/** Percentages by status; a status that nothing has is absent. */
export type Details = Record<string, number>;

export interface Global {
  /** -1 if nothing is reported yet. */
  compliance: number;
  complianceDetails?: Details;
}

export interface Hour {
  /** RFC 3339. */
  begin: string;
  compliance: number | null;
  lowest: number | null;
  highest: number | null;
}

/** A rule or a node in a list. */
export interface Listed {
  id: string;
  name: string;
  compliance: number;
  complianceDetails: Details;
}

export interface Report {
  status: string;
  message?: string;
}

export interface Value {
  value: string;
  reports?: Report[];
}

export interface Component {
  name: string;
  compliance: number;
  complianceDetails: Details;
  components?: Component[];
  values?: Value[];
}

export interface Directive extends Listed {
  skippedDetails?: { overridingRuleId: string; overridingRuleName: string };
  components?: Component[];
}

export interface Rule extends Listed {
  directives?: Directive[];
}

export interface NodeTree extends Listed {
  policyMode: string;
  rules?: Rule[];
}
